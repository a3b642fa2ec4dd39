/** Policies: what is adopted for each limiter, and where the files stand to it. Stage: dashboard. */
import { useStore } from '../data/store.js';
import { Outside } from '../parts/outside.jsx';
import { limiterHash, policyHash } from '../routing.js';
import { useTitle } from '../shell/title.js';

export function PoliciesPage({ name }: { name: string | null }) {
  const { rows } = useStore();
  useTitle('Policies · Flyball');
  return (
    <>
      <h1>Policies</h1>
      <p>{name}</p>
      <ul>
        {[...rows.keys()].map((one) => (
          <li key={one}>
            <a href={policyHash(one)}>
              <Outside text={one} />
            </a>{' '}
            <a href={limiterHash(one)}>limiter</a>
          </li>
        ))}
      </ul>
    </>
  );
}
