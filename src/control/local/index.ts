export {
  initFolder,
  MARKER_FILE,
  readMarker,
  type InitOutcome,
  type LineageMarker,
  type MarkerReading,
} from './lineage-marker.js';
export { LocalControlPlane, type LocalControlPlaneOptions } from './local-control-plane.js';
