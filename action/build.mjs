// Makes dist of src: node build.mjs DIR. The working directory has src, node_modules and LICENSE. The bundle is not minified, so that a change
// of it can be read.
import { build } from 'esbuild';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const out = process.argv[2];

const result = await build({
  entryPoints: ['src/index.js'],
  outfile: path.join(out, 'index.mjs'),
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  legalComments: 'none', // licenses.txt has them
  preserveSymlinks: true, // comments in the bundle name the files from here, wherever the packages are
  metafile: true,
  logLevel: 'warning',
});

// What the license list may have: the text of the first is LICENSE, and the others stand in the notices of the files.
const allowed = ['Apache-2.0', '(Apache-2.0 AND BSD-3-Clause)'];

/** packageOf is the directory of the package that a file is of, or undefined. */
const packageOf = (file) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0];

/** noticeOf is the comment at the head of a file if it is about rights: the packages have no file of them. */
function noticeOf(file) {
  const comment = /^(?:\/\/.*\n)+/.exec(readFileSync(file, 'utf8'))?.[0] ?? '';
  return /copyright/i.test(comment) ? comment.replaceAll(/^\/\/ ?/gm, '').trim() : undefined;
}

/** licenseOf is the part of the list about one package. */
function licenseOf([dir, files]) {
  const { name, version, license } = JSON.parse(readFileSync(path.join(dir, 'package.json')));
  if (!allowed.includes(license)) throw new Error(`${name} has the license ${license}: see build.mjs`);
  const notices = [...new Set(files.map(noticeOf).filter(Boolean))];
  if (notices.length === 0) throw new Error(`${name}: no file of it says whose it is`);
  return [`${name} ${version}: ${license}`, ...notices].join('\n\n');
}

const packages = Map.groupBy(Object.keys(result.metafile.inputs).sort(), packageOf);
packages.delete(undefined);
const parts = [
  'What index.mjs has of others: each package with its version, its license, and the notices of its files. The Apache License follows.',
  ...[...packages].map(licenseOf),
  readFileSync('LICENSE', 'utf8').trim(),
];
writeFileSync(path.join(out, 'licenses.txt'), `${parts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`);
