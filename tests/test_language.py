from fractions import Fraction

import numpy as np
import pytest

from grpo import (
    all_answers,
    answer_gradients,
    sample_answers,
    token_log_probabilities,
)

LOGITS = np.array([[0.0, 1.0, -0.5], [0.3, 0.0, 0.2], [1.0, -1.0, 0.0]])  # two tokens and the end


def by_loops(logits, tokens, V):
    """Return the log-probabilities of one answer, token by token."""
    found, before, ended = [], V, False
    for token in tokens:
        row = logits[before]
        found.append(0.0 if ended else row[token] - np.log(sum(np.exp(row))))
        ended = ended or token == V
        before = token
    return found


@pytest.mark.parametrize(("V", "steps", "count"), [(1, 1, 2), (2, 3, 15), (3, 4, 121), (4, 2, 21)])
def test_all_answers_are_listed_once(V, steps, count):
    answers = all_answers(V, steps)
    assert len(answers) == count == len({tuple(row) for row in answers.tokens.tolist()})
    # a word of the language is any string of tokens; 1 + 2 + 4 + 8 = 15 of at most three
    lengths = (answers.tokens != V).sum(axis=1)
    assert [int((lengths == n).sum()) for n in range(steps + 1)] == [V**n for n in range(steps + 1)]
    assert (answers.mask.sum(axis=1) == np.minimum(lengths + 1, steps)).all()


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_log_probabilities_are_those_of_loops_and_sum_to_one(steps):
    answers = all_answers(2, steps)
    found = token_log_probabilities(LOGITS, answers)
    expected = [by_loops(LOGITS, row, 2) for row in answers.tokens]
    np.testing.assert_allclose(found, expected, atol=1e-14)
    assert np.exp(found.sum(axis=1)).sum() == pytest.approx(1, abs=1e-14)


def test_two_tokens_in_exact_arithmetic():
    """Weights 1, 2, 3 in each row: probabilities are sixths, whatever came before."""
    answers = all_answers(2, 2)
    found = np.exp(token_log_probabilities(np.log([[1.0, 2, 3]] * 3), answers).sum(axis=1))
    sixth = [Fraction(k, 6) for k in (1, 2, 3)]
    expected = [sixth[2], sixth[0] * sixth[2], sixth[1] * sixth[2]]
    expected += [sixth[a] * sixth[b] for a in (0, 1) for b in (0, 1)]
    assert sum(expected) == 1
    np.testing.assert_allclose(found, [float(one) for one in expected], rtol=1e-15)


def test_gradients_are_those_of_central_differences():
    answers = all_answers(2, 3)
    slopes = np.random.default_rng(1).normal(size=answers.mask.shape)
    found = answer_gradients(LOGITS, answers, slopes)
    step = 1e-6
    for place in np.ndindex(LOGITS.shape):
        moved = np.zeros_like(LOGITS)
        moved[place] = step
        up, down = (
            (token_log_probabilities(LOGITS + sign * moved, answers) * slopes).sum(axis=1)
            for sign in (1, -1)
        )
        np.testing.assert_allclose(found[:, *place], (up - down) / (2 * step), atol=1e-8)


def test_the_score_is_zero_on_average():
    answers = all_answers(3, 4)
    logits = np.random.default_rng(2).normal(size=(4, 4))
    chances = np.exp(token_log_probabilities(logits, answers).sum(axis=1))
    scores = answer_gradients(logits, answers, np.ones(answers.mask.shape))
    np.testing.assert_allclose(np.tensordot(chances, scores, axes=1), 0, atol=1e-14)


def test_samples_have_the_listed_probabilities():
    answers, n = all_answers(2, 3), 200_000
    drawn = sample_answers(LOGITS, 3, n, rng=np.random.default_rng(0))
    chances = np.exp(token_log_probabilities(LOGITS, answers).sum(axis=1))
    codes = [np.ravel_multi_index(one.tokens.T, (3, 3, 3)) for one in (answers, drawn)]
    shares = (codes[1][:, None] == codes[0]).mean(axis=0)
    assert shares.sum() == pytest.approx(1)
    errors = np.sqrt(chances * (1 - chances) / n)
    assert (np.abs(shares - chances) < 4 * errors).all()


def test_large_logits_do_not_overflow():
    answers = all_answers(1, 1)
    found = token_log_probabilities([[0.0, 0.0], [1000.0, 0.0]], answers)
    np.testing.assert_array_equal(found[:, 0], [-1000.0, 0.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: all_answers(0, 2), "V must be >= 1, got 0"),
        (lambda: all_answers(2, 1.5), "steps must be a whole number, got 1.5"),
        (lambda: all_answers(10, 9), "V = 10 and steps = 9 give 1111111111 answers"),
        (lambda: token_log_probabilities(LOGITS, all_answers(3, 1)), r"got \(3, 3\)"),
        (lambda: token_log_probabilities(LOGITS * np.nan, all_answers(2, 1)), r"\[0, 0\] is nan"),
        (lambda: answer_gradients(LOGITS, all_answers(2, 1), [1.0]), r"\(3, 1\), got \(1,\)"),
        (lambda: sample_answers([1.0], 1, 1, rng=np.random.default_rng(0)), r"got \(1,\)"),
        (lambda: sample_answers(LOGITS, 1, 1, rng=0), "rng must be a .*Generator, got 0"),
        (lambda: sample_answers(LOGITS, 0, 1, rng=np.random.default_rng(0)), "steps must be >= 1"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
