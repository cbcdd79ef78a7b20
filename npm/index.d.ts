/** The flags of mockgateway in camel case, such as `{ clock: "manual", autoPay: "5s", dialect: "live" }`. */
export interface Options {
  [flag: string]: string | number | boolean | undefined;
}

/** A fault to inject, as in `POST /__mock/faults`. */
export interface Fault {
  /** Such as `"lose-response"` or `"status=503; retry-after=2"`. */
  fault: string;
  /** An operation, a method and path, or a kind of webhook; every request if omitted. */
  on?: string;
  times?: number;
  nth?: number;
  probability?: number;
}

/** A gateway that runs. */
export interface Gateway {
  /** The base URL, such as `"http://127.0.0.1:40613"`. */
  readonly url: string;
  /** A key of the default account. */
  readonly apiKey: string;
  /** Makes a call with `apiKey` and returns the member `data` of the response. A rejection is an Error with `status` and `body`. */
  call(method: string, path: string, body?: unknown): Promise<any>;
  /** Advances the virtual clock by a duration such as `"40d"`, to a time, or to the `"next"` timer. */
  advance(to: string | Date): Promise<{ now: string }>;
  /** Pays a transaction as the buyer would. */
  pay(id: string): Promise<any>;
  /** Injects a fault. */
  fault(fault: Fault): Promise<{ id: string }>;
  /** Stops the gateway. */
  close(): Promise<void>;
}

/** Starts a gateway on a free port. It ends with this process, even if that is killed. */
export function start(options?: Options): Promise<Gateway>;
