/**
 * The number of the contract between the agent and its plugins.
 *
 * A plugin writes the number it was built for into the `eitri.contract` field of its package.json; the agent compares
 * it before any code of the plugin runs. npm does not check optional peers, so this number is the only guard against a
 * plugin that was built for other shapes. It goes up with every change that an old plugin would not survive.
 */
export const CONTRACT_VERSION = 1;
