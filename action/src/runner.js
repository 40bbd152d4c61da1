// The runner: how a step reads its inputs and tells its results (docs.github.com, "Workflow commands for GitHub Actions").
import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';

/** escapeText makes a text safe as the message of a command. */
const escapeText = (text) => text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');

/** Runner is the runner as this process sees it, by its environment. Commands go to write. */
export class Runner {
  constructor(env, write) {
    this.env = env;
    this.write = write;
  }

  /** input is the value of an input without spaces around it; empty if it is not given. */
  input(name) {
    return (this.env[`INPUT_${name.toUpperCase()}`] ?? '').trim();
  }

  /** state is what an earlier phase of this step has saved; empty if it has not. */
  state(name) {
    return this.env[`STATE_${name}`] ?? '';
  }

  saveState(name, value) {
    this.#toFile('GITHUB_STATE', name, value);
  }

  output(name, value) {
    this.#toFile('GITHUB_OUTPUT', name, value);
  }

  /** summary adds Markdown to the summary of the job. */
  summary(markdown) {
    if (this.env.GITHUB_STEP_SUMMARY) appendFileSync(this.env.GITHUB_STEP_SUMMARY, markdown);
  }

  info(text) {
    // A line that begins with :: would be a command, and some lines are controld's.
    this.write(`${text.replaceAll(/^::/gm, ' ::')}\n`);
  }

  warning(text) {
    this.write(`::warning::${escapeText(text)}\n`);
  }

  error(text) {
    this.write(`::error::${escapeText(text)}\n`);
  }

  group(title) {
    this.write(`::group::${escapeText(title)}\n`);
  }

  endGroup() {
    this.write('::endgroup::\n');
  }

  /** mask has the runner replace a secret by *** in the log from now on. */
  mask(secret) {
    this.write(`::add-mask::${escapeText(secret)}\n`);
  }

  // The delimiter is random, so that no value can end early and set another name.
  #toFile(variable, name, value) {
    if (!this.env[variable]) return;
    const end = `end_${randomUUID()}`;
    appendFileSync(this.env[variable], `${name}<<${end}\n${value}\n${end}\n`);
  }
}
