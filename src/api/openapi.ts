/** The OpenAPI 3.1 document, made from the table of routes and their schemas. Stage: api. */
import { z } from 'zod';
import { VERSION } from '../version.js';
import { COOKIE, CSRF_HEADER } from './access.js';
import { PROBLEM_TYPE } from './problem.js';
import type { Route } from './route.js';
import { problem } from './schemas/common.js';
import { streamEvents } from './schemas/fleet.js';

type Json = Record<string, unknown>;

/** Statuses that any route may answer, by what it takes. */
const ALWAYS = [400, 401, 403, 421, 429, 500, 503];
const WITH_BODY = [413, 415];

const MEANING: Readonly<Record<number, string>> = {
  400: 'A query, path or body is not as it must be',
  401: 'A token is needed, or the one given does not count',
  403: 'The role does not reach, or a page of another origin asks',
  404: 'No such limiter or revision',
  409: 'It changed meanwhile; `current` says where it stands',
  413: 'The body is larger than 64 KB',
  415: 'The body is not JSON',
  421: 'The host is not one of this daemon',
  422: 'It cannot be done to this limiter',
  429: 'Too many requests of this client',
  500: 'A fault of the daemon',
  503: 'Redis does not answer, or too many follow the stream',
};

export function openApiDocument(routes: readonly Route[]): Json {
  const paths: Record<string, Json> = {};
  /** Answers that several routes share stand there once. */
  const answers = new Map<z.ZodType, string>();
  for (const { answer, id } of routes)
    if (!answers.has(answer)) answers.set(answer, `Answer_${id}`);
  for (const route of routes) {
    const path = `/api/v1${route.path}`;
    paths[path] = { ...paths[path], [route.method]: operation(route, answers.get(route.answer)!) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Flyball',
      version: VERSION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      description:
        'What a daemon of Flyball answers: limiters, their audit log, and verbs of a person. Fields may be added to answers: leave alone what you do not know.',
    },
    paths,
    components: {
      responses: Object.fromEntries(
        Object.entries(MEANING).map(([status, description]) => [
          `Problem_${status}`,
          {
            description,
            content: { [PROBLEM_TYPE]: { schema: { $ref: '#/components/schemas/Problem' } } },
          },
        ]),
      ),
      schemas: {
        Problem: schemaOf(problem),
        ...Object.fromEntries([...answers].map(([schema, name]) => [name, schemaOf(schema)])),
        ...Object.fromEntries(
          Object.entries(streamEvents).map(([name, schema]) => [`Event_${name}`, schemaOf(schema)]),
        ),
      },
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'A line of `flyball token add`.' },
        cookie: {
          ...{ type: 'apiKey', in: 'cookie', name: COOKIE },
          description: `From POST /session; what changes something needs Origin and \`${CSRF_HEADER}: 1\` too.`,
        },
      },
    },
  };
}

function operation(route: Route, answer: string): Json {
  const { id, summary, role, query, body, faults = [] } = route;
  const stream = route.path === '/stream';
  const statuses = [...ALWAYS, ...(body === undefined ? [] : WITH_BODY), ...faults];
  const type = stream ? 'text/event-stream' : 'application/json';
  const schema = stream ? { type: 'string' } : { $ref: `#/components/schemas/${answer}` };
  const free = role === null;
  return {
    operationId: id,
    summary,
    description: free ? 'Anybody may.' : `Role: ${role}.${open(route)}`,
    // An empty one among several: none is needed.
    security: [...(free || role === 'reader' ? [{}] : []), { token: [] }, { cookie: [] }],
    parameters: [...pathParameters(route.path), ...queryParameters(query)],
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: inputOf(body) } },
          },
        }),
    responses: {
      200: { description: 'As asked', content: { [type]: { schema } } },
      ...Object.fromEntries(
        [...new Set(statuses)]
          .sort((a, b) => a - b)
          .map((status) => [status, { $ref: `#/components/responses/Problem_${status}` }]),
      ),
    },
  };
}

function open({ role }: Route): string {
  return role === 'reader' ? ' Needs no token while the daemon listens on loopback alone.' : '';
}

function pathParameters(path: string): Json[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    ...{ name, in: 'path', required: true },
    schema: name === 'revision' ? { type: 'integer', minimum: 0 } : { type: 'string' },
  }));
}

function queryParameters(query: z.ZodType | undefined): Json[] {
  if (query === undefined) return [];
  const { properties = {}, required = [] } = inputOf(query) as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    ...{ name, in: 'query', required: required.includes(name), schema },
  }));
}

/** Of an answer: what it has now; more may come, so nothing is closed. */
function schemaOf(schema: z.ZodType): Json {
  const made = z.toJSONSchema(schema, {
    unrepresentable: 'any',
    override({ jsonSchema }) {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  }) as Json;
  return without(made);
}

function inputOf(schema: z.ZodType): Json {
  return without(z.toJSONSchema(schema, { unrepresentable: 'any', io: 'input' }) as Json);
}

function without({ $schema: _, ...rest }: Json): Json {
  return rest;
}
