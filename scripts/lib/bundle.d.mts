/** The path of the bundle of an entry in TypeScript, below `folder`. */
export declare function bundleTo(entry: string, folder: string): Promise<string>;
