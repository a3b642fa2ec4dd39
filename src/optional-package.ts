/** Packages that Flyball uses but does not bring along: loaded when first needed, missed in words that say how to get them. Stage: sense, audit, report. */

/** What `load` imports; `faultOf` makes the error of the words when `name` is not installed. */
export async function optionalPackage<T>(
  name: string,
  load: () => Promise<T>,
  faultOf: (text: string) => Error = (text) => new Error(text),
): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if ((error as { code?: string } | null)?.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw faultOf(`the npm package '${name}' is not installed. Run: npm install ${name}`);
  }
}
