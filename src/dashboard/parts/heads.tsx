/** The head of a table that is not sorted. Stage: dashboard. */

export interface HeadsProps {
  titles: readonly string[];
  /** Those above numbers. */
  nums?: readonly string[];
}

export function Heads({ titles, nums = [] }: HeadsProps) {
  return (
    <thead>
      <tr>
        {titles.map((title) => (
          <th key={title} scope="col" class={nums.includes(title) ? 'num' : undefined}>
            {title}
          </th>
        ))}
      </tr>
    </thead>
  );
}
