/** What the adopted policy says to services beside the numbers, as JSON in the params. Stage: policy, enforce. */

/** Only what a policy states is there; each reader fills its default. Fields of newer versions are ignored. */
export interface ServiceTerms {
  /** `POST /api/pay/**`, as the policy lists them. */
  routes?: string[];
  count?: 'all' | 'failures' | 'successes';
  draw?: 'each' | 'block';
  exact?: boolean;
}

/** Empty for terms that say nothing, so that params of plain policies stay as short as they were. */
export function serviceTermsText(terms: ServiceTerms): string {
  const text = JSON.stringify(terms);
  return text === '{}' ? '' : text;
}

/** Text that is empty, no JSON or no object says nothing: a service must not fail for it. */
export function parseServiceTerms(text: string | null | undefined): ServiceTerms {
  if (!text) return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}
