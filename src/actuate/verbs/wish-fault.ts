/** What is wrong with what a person asked of a verb, told by fields: those of the API, which the CLI turns into its flags. Pure. Stage: actuate. */
import { type ErrorCode, FlyballError } from '../../errors.js';

/** What a field is called where the asker wrote it. */
export type FieldName = (field: string) => string;

const asField: FieldName = (field) => field;

export class WishFault extends FlyballError {
  /** Those that it names, the one at fault first; empty: it is about none. */
  readonly fields: readonly string[];

  constructor(
    readonly told: (name: FieldName) => string,
    code: ErrorCode = 'FLYBALL_E_CLI_USAGE',
  ) {
    super(code, told(asField));
    const fields: string[] = [];
    told((field) => {
      if (!fields.includes(field)) fields.push(field);
      return field;
    });
    this.fields = fields;
  }
}
