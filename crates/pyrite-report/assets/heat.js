// How far a value is from what it should be, as a number from 0 to 1 for the heat map. Relative errors are read on a
// logarithmic scale from 1e-8 (nothing to see) to 1; what differs in kind (a shape, a dtype) has no number and is 1.

const COLDEST = 1e-8;

function heatOf(divergence) {
  if (!divergence) return 0;
  const { error } = divergence;
  if (typeof error !== 'number' || !Number.isFinite(error)) return divergence.class ? 1 : 0;
  if (error <= COLDEST) return divergence.class ? 0.35 : 0;
  const scaled = Math.min(1, Math.log10(error / COLDEST) / -Math.log10(COLDEST));
  return divergence.class ? Math.max(0.35, scaled) : Math.min(0.3, scaled);
}
