/** Flags of mockgateway in camel case, with the same defaults. */
export interface Options {
  environment?: "sandbox" | "production";
  dialect?: "document" | "live";
  /** The report of a probe, as an object. */
  profile?: unknown;
  lenient?: boolean;
  /** `"realtime"` runs; `"manual"` moves only when it is advanced. */
  clock?: "realtime" | "manual";
  speed?: number;
  start?: Date | string;
  /** Makes ids and codes deterministic. */
  seed?: number;
  /** A duration such as `"5s"`. */
  autoPay?: string;
  /** In cents, like `openingBalance`. */
  fee?: number;
  openingBalance?: number;
  settledPercent?: number;
  basicTokenX?: string;
  /** The URL of the requests that `onWebhook` gets; by default `http://localhost/webhooks`. */
  webhook?: string;
  webhookSecret?: string;
  webhookTimeout?: string;
  webhookRetries?: string;
  webhookPauseAfter?: number;
  timestampHeader?: string;
  signatureHeader?: string;
  publicUrl?: string;
  /** The limit in MiB, by default 256. */
  memory?: number;
  /**
   * Where the program is, if not next to this module: its URL, response, bytes or module.
   * Only the first gateway of a page loads it.
   */
  wasm?: string | URL | Response | ArrayBuffer | ArrayBufferView | WebAssembly.Module;
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

/** Responds to a webhook. Without a result the response is 204; an exception is 500, `Response.error()` a broken connection. */
export type Receiver = (request: Request) => Response | void | Promise<Response | void>;

/** A gateway that runs. */
export interface Gateway {
  /** The base URL of the API. It leads nowhere but to `fetch`, which accepts any other host too. */
  readonly url: string;
  /** What the program was built from: a version or a commit, and the release of Go. */
  readonly version: string;
  /** A key of the default account. */
  readonly apiKey: string;
  /** The secret that signs the webhooks. */
  readonly webhookSecret: string;
  /** Makes a request, as the global function does. A relative URL is one of `url`. A connection that breaks is a TypeError. */
  fetch(input: Request | URL | string, init?: RequestInit): Promise<Response>;
  /**
   * Sets the receiver of all webhooks; null is none. It also gets what is sent to a `notify_url` and to endpoints. A response
   * other than 2xx is retried on the virtual clock.
   */
  onWebhook(receiver: Receiver | null): void;
  /** Makes a call with `apiKey` and returns the member `data` of the response. A rejection is an Error with `status` and `body`. */
  call(method: string, path: string, body?: unknown): Promise<any>;
  /** Advances the virtual clock by a duration such as `"40d"`, to a time, or to the `"next"` timer. */
  advance(to: string | Date): Promise<{ now: string }>;
  /** Pays a transaction as the buyer would. */
  pay(id: string): Promise<any>;
  /** Injects a fault. */
  fault(fault: Fault): Promise<{ id: string }>;
  /** Returns the whole state as a file of JSON, which a mockgateway can load too. No request may be running. */
  snapshot(): Promise<string>;
  /** Restores a snapshot of a gateway with the same dialect and environment. No request may be running. */
  restore(snapshot: string): Promise<void>;
  /** Ends the gateway. */
  close(): Promise<void>;
}

/** Starts a gateway in this page, worker or process. */
export function createGateway(options?: Options): Promise<Gateway>;
