/** The step rule before the demo's checkout: the policy that ships, under another law. */
import { definePolicy, step } from 'flyball';
import checkout from '../policies/checkout.ts';

export default definePolicy({ ...checkout, control: step() });
