/** What adopting a policy's file would change, field by field, and where what is in force has drifted. Stage: dashboard. */
import { Outside } from '../parts/outside.jsx';
import type { Plan } from './stands.jsx';

export function FieldChanges({ plan }: { plan: Pick<Plan, 'fields' | 'drift'> }) {
  const said = (value: unknown) => (value === null ? 'not stated' : JSON.stringify(value));
  return (
    <dl class="facts">
      {plan.fields.map((one) => (
        <div class="pair" key={one.field}>
          <dt>
            <Outside text={one.field} />
          </dt>
          <dd>
            <Outside text={said(one.before)} /> → <Outside text={said(one.after)} />
          </dd>
        </div>
      ))}
      {plan.drift.map((one) => (
        <div class="pair" key={one.field}>
          <dt>
            <Outside text={one.field} /> (drift)
          </dt>
          <dd>
            in force <Outside text={String(one.inForce)} />, by the policy{' '}
            <Outside text={String(one.adopted)} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** As a person says it. */
export function numberName(name: Plan['numbers'][number]['name']): string {
  return name === 'inFlightMax' ? 'in-flight cap' : name;
}
