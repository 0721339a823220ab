// Where a run failed: the operators that its signature names, the nodes that call them, the first value that differs.

/** The operators that a signature blames: what follows its last ` by `. */
function blamedOperators(run) {
  const found = / by ([^ ].*)$/.exec(run.signature || '');
  return found ? found[1].split(' or ').filter((name) => /^[\w.:]+$/.test(name)) : [];
}

/** The operators to look at: those that are blamed, else that of the first value that differs. */
function suspects(run) {
  const blamed = blamedOperators(run);
  const place = blamed.length ? null : firstFailure(run);
  return place ? [run.graphs[place.graph].nodes[place.node].target] : blamed;
}

/** Whether a value differs from the reference's. */
function differs(node) {
  return Boolean(node.divergence && node.divergence.class);
}

/** The nodes of a graph where the failure is: values that differ, else calls of the blamed operators. */
function failingNodes(run, graph) {
  const found = graph.nodes.flatMap((node, index) => (differs(node) ? [index] : []));
  if (found.length) return found;
  const blamed = new Set(blamedOperators(run));
  return graph.nodes.flatMap((node, index) => (blamed.has(node.target) ? [index] : []));
}

/** The first place where a run failed: its graph and its node. */
function firstFailure(run) {
  const measured = run.graphs.findIndex((graph) => graph.nodes.some(differs));
  const at = measured !== -1 ? measured : run.graphs.findIndex((graph) => failingNodes(run, graph).length);
  return at === -1 ? null : { graph: at, node: failingNodes(run, run.graphs[at])[0] };
}
