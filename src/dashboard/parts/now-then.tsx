/** Now → then, row by row; what stays says so. Stage: dashboard. */

export interface NowThenProps {
  rows: readonly (readonly [name: string, now: string, then: string])[];
  heads?: readonly [now: string, then: string];
}

export function NowThen({ rows, heads }: NowThenProps) {
  return (
    <table>
      {heads !== undefined && (
        <thead>
          <tr>
            <td />
            <th scope="col">{heads[0]}</th>
            <th scope="col">{heads[1]}</th>
          </tr>
        </thead>
      )}
      <tbody>
        {rows.map(([name, now, then]) => (
          <tr key={name} class={now === then ? 'same' : 'moved'}>
            <th scope="row">{name}</th>
            <td>{now}</td>
            <td>{now === then ? 'the same' : `→ ${then}`}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
