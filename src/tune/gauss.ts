/** Linear equations by Gauss with pivots. Pure. Stage: tune, simulate. */

/**
 * Solves `matrix`, the right side as its last column, which it works on; null where the equations say the same twice:
 * where a pivot is not above `least`.
 */
export function solveLinear(matrix: number[][], least: number): number[] | null {
  const n = matrix.length;
  for (let col = 0; col < n; col++) {
    let pivot = col;
    for (let row = col + 1; row < n; row++) {
      if (Math.abs(matrix[row]![col]!) > Math.abs(matrix[pivot]![col]!)) pivot = row;
    }
    [matrix[col], matrix[pivot]] = [matrix[pivot]!, matrix[col]!];
    const head = matrix[col]!;
    if (!(Math.abs(head[col]!) > least)) return null;
    for (let row = 0; row < n; row++) {
      if (row === col) continue;
      const factor = matrix[row]![col]! / head[col]!;
      for (let k = col; k <= n; k++) matrix[row]![k]! -= factor * head[k]!;
    }
  }
  return matrix.map((row, i) => row[n]! / row[i]!);
}
