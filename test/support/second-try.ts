/** Names the tests that passed only at their second try: what passes so is a fault of the test or of the product, and is to be mended. */
interface Played {
  fullName: string;
  diagnostic(): { flaky: boolean } | undefined;
  result(): { errors?: readonly { message: string }[] | undefined };
}

interface PlayedFile {
  relativeModuleId: string;
  children: { allTests(): Iterable<Played> };
}

export default class SecondTry {
  onTestRunEnd(files: readonly PlayedFile[]): void {
    const lines = files.flatMap((file) =>
      [...file.children.allTests()]
        .filter((test) => test.diagnostic()?.flaky)
        .map((test) => `  ${file.relativeModuleId} > ${test.fullName}\n${firstFault(test)}`),
    );
    if (lines.length === 0) return;
    process.stdout.write(`\nPassed at the second try only (${lines.length}):\n${lines.join('')}`);
  }
}

function firstFault(test: Played): string {
  const [error] = test.result().errors ?? [];
  return error === undefined ? '' : `    ${error.message.split('\n')[0]}\n`;
}
