// Mark the words of two lines that lie outside a longest common subsequence of both.
const LARGEST_TABLE = 1000000;

// Split into words, single characters of scripts without spaces, single marks, and the space between them.
const splitWords = (line) =>
  line.match(/\s+|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Khmer}\p{Script=Lao}\p{Script=Myanmar}]\p{M}*|[\p{L}\p{N}_][\p{L}\p{N}\p{M}_'’-]*|[^\s]/gu) ?? [];

// Marks of the words of `a` that are not shared, and of `b`.
function differingWords(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const marks = [a, b].map((words) => words.map((_, i) => i >= start && i < words.length - end));
  const m = a.length - start - end;
  const n = b.length - start - end;
  if (m * n > LARGEST_TABLE) return marks;
  const width = n + 1;
  const longest = new Uint32Array((m + 1) * width);
  for (let i = m - 1; i >= 0; i -= 1) {
    for (let j = n - 1; j >= 0; j -= 1) {
      longest[i * width + j] =
        a[start + i] === b[start + j]
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  for (let i = 0, j = 0; i < m && j < n; ) {
    if (a[start + i] === b[start + j]) {
      marks[0][start + i] = false;
      marks[1][start + j] = false;
      i += 1;
      j += 1;
    } else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return marks;
}
