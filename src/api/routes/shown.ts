/** `POST /stream/shown`: which rows somebody who follows all has in sight. Stage: api. */
import { z } from 'zod';
import { NAME_PATTERN } from '../../redis/keys.js';
import { route } from '../route.js';
import { shownAnswer } from '../schemas/fleet.js';
import { MOST_OF_ONE, SHOWN_MS } from '../shown.js';

export const shownRoute = route({
  method: 'post',
  path: '/stream/shown',
  id: 'showLimiters',
  summary:
    'Rows that you show of the stream of all: they are looked at each time, for 10 s. Say it again while you show them.',
  role: 'reader',
  changesNothing: true,
  body: z.strictObject({ limiters: z.array(z.string().regex(NAME_PATTERN)).max(MOST_OF_ONE) }),
  answer: shownAnswer,
  async handle({ body, deps }) {
    return { schema: 1, limiters: deps.watch.show(body.limiters), forMs: SHOWN_MS };
  },
});
