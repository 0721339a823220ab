// Where a run failed: the operators that its signature names, the nodes that call them, the first value that differs.

/** How many operators a smallest program may have for each of them to be a suspect. */
const FEW = 3;

/** The operators that a signature blames: what follows its last ` by `, or the operator at which an error was raised; else those that
 * the smallest program is left with, where they are few. */
function blamedOperators(run) {
  const signature = run.signature || '';
  const found = / by ([^ ].*)$/.exec(signature) || / at (\w+\.\w[\w.]*)$/.exec(signature);
  const named = found ? found[1].split(' or ').filter((name) => /^[\w.:]+$/.test(name)) : [];
  const known = (name) => run.graphs.some((graph) => graph.nodes.some((node) => node.target === name));
  if (named.some(known)) return named;
  const text = run.repro ? (run.repro.text || '').split('def load_args')[0] : '';
  const left = [...new Set([...text.matchAll(/torch\.ops\.([\w.]+)\(/g)].map((match) => match[1]))];
  return left.length && left.length <= FEW ? left : named;
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
