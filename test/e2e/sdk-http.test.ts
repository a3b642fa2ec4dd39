import { createServer, type ServerResponse } from 'node:http';
import { flyball } from '../../src/enforce/middleware/http.js';
import { bodyOf, middlewareCases } from '../support/middleware-cases.js';
import { useRig } from '../support/middleware-rig.js';

const rig = useRig('http');

middlewareCases(rig, {
  name: 'http',
  knowsRoute: false,
  readsBodyFirst: true,
  async serve({ limiters, options, handlers }) {
    const routes: Record<string, (res: ServerResponse, body: string) => unknown> = {
      '/ok': (res) => res.end('ok'),
      '/health': (res) => res.end('healthy'),
      '/users': (res) => res.end('user'),
      '/fail': (res) => res.writeHead(502).end('no'),
      '/throw': () => {
        throw new Error('boom');
      },
      '/destroy': (res) => res.destroy(),
      '/never': () => handlers.arrived(),
      '/stream': (res) => {
        res.write('first ');
        handlers.streaming(() => res.end('last'));
      },
      '/echo': (res, body) => res.end(body),
    };
    const guards = limiters.map((each) => flyball(each, options));
    return createServer(async (req, res) => {
      try {
        const body = req.method === 'POST' ? await bodyOf(req) : '';
        for (const guard of guards) if (!(await guard(req, res))) return;
        routes[/^\/\w+/.exec(req.url!)![0]]!(res, body);
      } catch {
        res.writeHead(500).end('error');
      }
    });
  },
});
