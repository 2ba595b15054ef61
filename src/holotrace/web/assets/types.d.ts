// Types of the server's answers, of the timeline's state, and of the names that Dash puts into the window.

import type { Timeline } from "./timeline/timeline.js";

/** Links to pages under a title, from `shell/navigation.py`. */
export interface Section {
  title: string;
  links: { title: string; href: string; isShown: boolean }[];
}

/** The row, depth, start, length and event_index of an event; times are in ns since the origin of its rank. */
export type Place = [number, number, number, number, number];

/** A thread or a stream from `timeline/rows`; `at` is the number of the row. */
export interface Row {
  at: number;
  label: string;
  process: string;
  device: number | null;
  lanes: number;
  events: number;
  hidden: number;
  isFolded?: boolean;
}

export interface Series {
  number: number;
  time: number[];
  mean: number[];
  highest: number[];
  end: number;
}

export interface Counter {
  at: number;
  label: string;
  unit: string;
  device: number | null;
  highest: number;
  series?: Series;
}

export interface SliceName {
  text: string;
  isFound: boolean;
  colour: string;
}

/** One event, or several merged events; for merged events, `busy` is the sum of the lengths, `event` the longest. */
export interface Slice {
  start: number;
  length: number;
  busy: number;
  count: number;
  name: SliceName;
  event: number;
}

export interface Segment {
  start: number;
  length: number;
  count: number;
  kind: string;
  name: string;
  event: number;
  row: number;
  depth: number;
}

export interface Interval {
  start: number;
  length: number;
}

/** A critical path; `marks` has its parts by lane, with keys `row/depth`. */
export interface CriticalPath {
  window: string;
  start: number;
  end: number;
  count: number;
  classes: [string, number][];
  along: Segment[];
  marks: Map<string, Interval[]>;
}

/** A finding of a rank; `event` is the event to look at, or null. */
export interface Finding {
  kind: string;
  text: string;
  start: number;
  end: number;
  event?: number | null;
}

export interface Link {
  relation: string;
  name: string;
  at: Place;
}

/** The answer of `timeline/rows` for a rank. */
export interface RankAnswer {
  origin: string;
  length: number;
  steps: [number, number, number][];
  rows: Omit<Row, "at">[];
}

/** The clock of a rank in an answer of `timeline/clocks`. */
export interface ClockAnswer {
  rank: number;
  host: string;
  half_width: number | null;
  lines: { at: string; offset: number; drift: number; last: string | null }[];
}

/** The correction to add to the times of a rank up to `last`: `offset` at `at`, and `rate` more per ns after `at`. */
export interface ClockLine {
  at: number;
  offset: number;
  rate: number;
  last: number;
}

/** The clock of a rank; `recorded` is this rank's origin minus the first rank's origin, both as recorded. */
export interface Clock {
  recorded: number;
  host: string;
  halfWidth: number | null;
  lines: ClockLine[];
}

/** A rank on the timeline; within the view, its times plus `offset` are times on the axis. */
export interface Rank {
  number: number;
  origin: bigint;
  clock: Clock;
  offset: number;
  length: number;
  steps: [number, number, number][];
  rows: Row[];
  lanes: Map<string, Slice[]>;
  counters: Counter[];
  path: CriticalPath | null;
  findings?: Finding[];
  request?: AbortController;
  hasCounters?: boolean;
  isArranged?: boolean;
  isFolded?: boolean;
  reason?: string;
}

interface Placed {
  rank: Rank;
  readonly top: number;
  height: number;
  isPinned?: boolean;
}

export type RowItem = Placed & { kind: "row"; row: Row };
export type CounterItem = Placed & { kind: "counter"; counter: Counter };
export type Item = RowItem | CounterItem | (Placed & { kind: "rank" | "path" | "findings" });

/** A selected span of time; `rows` maps rank numbers to the selected rows, or is null for all rows. */
export interface Span {
  start: number;
  end: number;
  rows: Map<number, Set<number>> | null;
}

export interface Selected {
  rank: number;
  event: number;
  at?: Place;
}

export interface EventAnswer {
  name: string;
  kind: string;
  at: Place;
  start_ns: string;
  arguments: [string, string][];
  inside: { name: string; at: Place }[];
}

export interface SpanAnswer {
  rows: [number, number, number][];
}

/** The answer of `timeline/totals`: name, kind, count, total, self, mean, min, max, rank and event of each name. */
export interface TotalsAnswer {
  rows: [string, string, ...number[]][];
  count: number;
  event_count: number;
  total_ns: number;
  self_ns: number;
}

/** The place of a SQL row on the timeline: rank and event, or rank, start and end on the clock of the rank's file. */
export type SqlPlace = [number, number] | [number, string, string];

/** The answer of `timeline/sql`: cells as text. */
export interface SqlAnswer {
  columns: string[];
  rows: (string | null)[][];
  places: (SqlPlace | null)[];
  count: number;
}

/** The answer of `timeline/flames`: outer path, name, total, self, count, rank and event of each path. */
export interface FlamesAnswer {
  total_ns: number;
  paths: [number, number, number, number, number, number, number][];
  names: [string, string][];
  left_out: number;
}

export interface SearchAnswer {
  count: number;
  found: Place[];
  longest: Place | null;
}

type Columns = number[][];

export interface SlicesAnswer {
  lanes: [number, number, Columns, Columns][];
  names: [string, string, boolean][];
}

export interface PathAnswer {
  window: string;
  start: number;
  end: number;
  count: number;
  classes: [string, number][];
  along: Columns;
  path_classes: string[];
  names: string[];
  marks: [number, number, number[], number[]][];
}

/** A point on the canvas, in pixels. */
export interface Pointer {
  x: number;
  y: number;
}

/** A row of a table: text by column, and exact values under the keys `column|exact`. */
export type TableRow = Record<string, string | undefined>;

/** The addresses that `shell/scripts.py` writes into the page. */
export interface Addresses {
  plotly: string[];
  wholePlotly: string[];
  plotlyTypes?: string[];
  tables: string[];
  pages: Record<string, string>;
}

export interface CategoryAxis {
  whole?: CategoryAxis;
  type?: string;
  ticktext?: unknown[];
  tickvals?: unknown[];
  title?: { text?: string };
}

export interface PlotlyFigure {
  data?: { type?: string }[];
  layout?: {
    annotations?: { text?: string; whole?: string; xanchor?: string; yref?: string; align?: string; font?: { size?: number } }[];
    legend?: { y?: number };
    xaxis?: CategoryAxis;
    xaxis2?: CategoryAxis;
    yaxis?: { showticklabels?: boolean };
    yaxis2?: { showticklabels?: boolean; ticktext?: unknown[]; categoryarray?: unknown[] };
  };
}

interface Plotly {
  Plots: { resize(element: HTMLElement): Promise<unknown> };
  react(element: HTMLElement, figure: PlotlyFigure, ...rest: unknown[]): Promise<unknown>;
  relayout(element: HTMLElement, changes: object): Promise<unknown>;
}

interface React {
  createElement(type: string, props: object, text?: string): unknown;
  useEffect(effect: () => void, dependencies: unknown[]): void;
  useState<T>(first: T): [T, (next: T) => void];
}

declare global {
  /** The renderer of Dash, whose constructor draws the page. */
  const DashRenderer: new () => unknown;

  interface Window {
    React: React;
    Plotly: Plotly | Promise<void>;
    dash_ag_grid: { AgGrid?: unknown; getApi?(id: string): { purgeInfiniteCache(): void } | undefined };
    dash_clientside: {
      no_update: unknown;
      set_props(id: string, props: object): void;
      [namespace: string]: any;
    };
    holotrace: { Later?: unknown; Navigation?: unknown; timeline?: Timeline | null };
  }
}
