export { checkFolder } from './folder-check.js';
export { initFolder, readMarker } from './lineage-marker.js';
export { LocalControlPlane } from './local-control-plane.js';
