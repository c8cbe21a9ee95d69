// Reads a JSON list of {tex, display} from standard input and writes the list of their MathML.
import { readFileSync } from "node:fs";
import mathjax from "mathjax";

const formulas = JSON.parse(readFileSync(0, "utf8"));
const MathJax = await mathjax.init({ loader: { load: ["input/tex"] } });
const mathml = formulas.map(({ tex, display }) => MathJax.tex2mml(tex, { display }));
process.stdout.write(JSON.stringify(mathml));
