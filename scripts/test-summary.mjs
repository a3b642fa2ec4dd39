/** The last line of `.ci/run`: `N passed, N failed, N skipped`, from Vitest's report; non-zero when none ran. */
import { readFileSync } from 'node:fs';

let report;
try {
  report = JSON.parse(
    readFileSync(new URL('../.flyball/test-report.json', import.meta.url), 'utf8'),
  );
} catch {
  report = { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, testResults: [] };
}
// A file that failed before its first test has no failed test, and yet it failed.
const brokenFiles = report.testResults.filter(
  (file) =>
    file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
);
const passed = report.numPassedTests;
const failed = report.numFailedTests + brokenFiles.length;
const skipped = report.numPendingTests + (report.numTodoTests ?? 0);
process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`);
process.exitCode = passed + failed === 0 || failed > 0 ? 1 : 0;
