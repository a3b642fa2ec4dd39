/** `GET /openapi.json`: the document itself. Stage: api. */
import { z } from 'zod';
import { openApiDocument } from './openapi.js';
import { type Route, route } from './route.js';

export function openApiRoute(others: readonly Route[]): Route {
  let made: Record<string, unknown> | null = null;
  const self: Route = route({
    method: 'get',
    path: '/openapi.json',
    id: 'readDocument',
    summary: 'This document.',
    role: null,
    answer: z.record(z.string(), z.unknown()),
    async handle() {
      made ??= openApiDocument([...others, self]);
      return made;
    },
  });
  return self;
}
