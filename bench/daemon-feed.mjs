/** A process that writes the telemetry of many limiters until it is ended: `node daemon-feed.mjs <port> <limiters>`. */
import { startLoad } from './daemon-load.mjs';

const [port, limiters] = process.argv.slice(2).map(Number);
const { fields } = await startLoad(port, limiters);
process.send({ fields });
// It ends with the bench, however that ends.
process.on('disconnect', () => process.exit());
