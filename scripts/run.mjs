/**
 * What `npm start`, `npm test`, `npm run bench` and `npm run soak` begin with: set-up, then the thing itself.
 * Plain Node without dependencies, since nothing may be installed yet; only the version check runs on an old Node.
 */
const [major, minor] = process.versions.node.split('.').map(Number);

if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(
    `Flyball needs Node 20.19 or newer, and this is Node ${process.versions.node}: install a newer one from https://nodejs.org.\n`,
  );
  process.exitCode = 1;
} else {
  import('./tasks.mjs').then(({ runTask }) => runTask(process.argv.slice(2)));
}
