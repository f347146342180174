import numpy as np
import torch

from mnmt_model.optim.adafactor import FactoredStack, add_updates, factored_scalings, update_norms

N, ROWS, COLUMNS = 3, 5, 7


def make_stack(seed: int = 0) -> FactoredStack:
    """Matrices of different scales."""
    generator = torch.Generator().manual_seed(seed)
    scales = torch.tensor([1.0, 1e-3, 20.0])
    return FactoredStack(
        parameter=torch.randn(N, ROWS, COLUMNS, generator=generator),
        grad=torch.randn(N, ROWS, COLUMNS, generator=generator) * scales[:, None, None],
        row=torch.rand(N, ROWS, generator=generator),
        column=torch.rand(N, COLUMNS, generator=generator),
        size=ROWS * COLUMNS,
        weight=0.25,
        num_rows=ROWS,
    )


def test_a_stack_is_updated_at_once_as_its_matrices_are_by_definition() -> None:
    stack, scales = make_stack(), torch.tensor([0.1, -2.0, 3.0])
    before = make_stack()
    scalings = factored_scalings([stack], None)
    (norms,) = update_norms([stack], scalings)
    add_updates([stack], scalings, [scales])
    for i in range(N):
        theta, g, row, column = (
            getattr(before, name)[i].double().numpy() for name in ("parameter", "grad", "row", "column")
        )
        row = 0.75 * row + 0.25 * (g * g).mean(1)
        column = 0.75 * column + 0.25 * (g * g).mean(0)
        u = g / np.sqrt(np.outer(row, column) / row.mean())
        np.testing.assert_allclose(stack.row[i], row, rtol=1e-5)
        np.testing.assert_allclose(stack.column[i], column, rtol=1e-5)
        np.testing.assert_allclose(norms[i], np.sqrt((u**2).sum()), rtol=1e-5)
        np.testing.assert_allclose(stack.parameter[i], theta + scales[i].item() * u, rtol=1e-5, atol=1e-5)


def test_a_matrix_alone_shares_the_memory_of_its_stack() -> None:
    stack = make_stack()
    for matrix in stack.split():
        matrix.parameter.zero_()
        matrix.row.zero_()
    assert not stack.parameter.any()
    assert not stack.row.any()
