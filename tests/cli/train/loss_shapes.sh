#!/usr/bin/env bash
# Losses of elements reject operands that would broadcast: [n, 1] against [n] is every pair of
# samples, and a model trained on it learns the mean of the labels.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
op="$bin/paddle-op"
for loss in mse_loss l1_loss smooth_l1_loss kl_div binary_cross_entropy hinge_embedding_loss \
  soft_margin_loss log_loss square_error_cost poisson_nll_loss multi_label_soft_margin_loss; do
  expect 2 "$loss: input is float32[4, 1], label is float32[4]: expected equal shapes" \
    "$op" run "$loss" input="f32[4,1]{0.1,0.9}" label="f32[4]{0.1,0.9}"
  quiet 0 "$op" run "$loss" input="f32[4,1]{0.1,0.9}" label="f32[4,1]{0.1,0.9}"
done
expect 2 "expected equal shapes" "$op" run binary_cross_entropy_with_logits logit="f32[4,1]" label="f32[4]"
expect 2 "expected equal shapes" "$op" run sigmoid_focal_loss logit="f32[4,1]" label="f32[4]"
expect 2 "expected equal shapes" "$op" run gaussian_nll_loss input="f32[4,1]" label="f32[4]" variance="f32[4]{1,2}"
expect 2 "expected equal shapes" "$op" run margin_ranking_loss input="f32[4,1]" other="f32[4]" label="f32[4]"
expect 2 "expected equal shapes" "$op" run cosine_embedding_loss input1="f32[4,3]" input2="f32[4,3]" label="f32[4,1]"
expect 2 "expected equal shapes" "$op" run triplet_margin_loss input="f32[4,3]" positive="f32[1,3]" negative="f32[4,3]"
# A weight does not broadcast a loss to a larger shape either.
for operand in weight pos_weight; do
  expect 2 "does not broadcast to the shape of" "$op" run binary_cross_entropy_with_logits \
    logit="f32[4,1]" label="f32[4,1]" $operand="f32[4]{1,2}"
  quiet 0 "$op" run binary_cross_entropy_with_logits logit="f32[4,3]" label="f32[4,3]" $operand="f32[3]{1,2}"
done
expect 2 "does not broadcast to the shape of" "$op" run binary_cross_entropy input="f32[4,1]{0.1,0.9}" label="f32[4,1]{0.1,0.9}" weight="f32[4]{1,2}"
# A number applies to all elements.
quiet 0 "$op" run mse_loss input="f32[4,1]" label="f32[]"
finish
