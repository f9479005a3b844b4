#include "train/step/loss_form.h"

#include "base/source_location.h"
#include "train/step/batch_dependence.h"

namespace paddle::train {
namespace {

LossForm unknown(std::string reason, const ir::Operation* origin = nullptr) {
  LossForm out;
  out.reason = std::move(reason);
  if (origin) out.place = parse_origin(origin->location).place;
  return out;
}

}  // namespace

LossForm loss_form(const ir::Function& function, const ir::Value& loss) {
  const BatchDependence dependence(function);
  if (!dependence.has_samples())
    return unknown(
        "the model takes batches of one size, so that it cannot be told how the loss "
        "depends on their number of samples");
  const Dependence d = dependence.of(&loss);
  LossForm out;
  if (d.kind == Dependence::Kind::kFixed && !d.divided()) {
    out.kind = LossForm::Kind::kMean;
    return out;
  }
  if (d.kind != Dependence::Kind::kSum)
    return unknown(str("'", d.origin ? d.origin->op->name() : "loss",
                       "' is not a sum over samples, nor such a sum divided by a number that "
                       "depends only on the data"),
                   d.origin);
  if (!d.divided() && d.plus_fixed)
    return unknown("a sum over samples plus a value that does not depend on them", loss.producer);
  if (!d.divided()) {
    out.kind = LossForm::Kind::kSum;
    return out;
  }
  if (d.per_sample) {
    out.kind = LossForm::Kind::kMean;
    return out;
  }
  out.kind = LossForm::Kind::kWeighted;
  out.divisor = d.divisor;
  out.guarded = d.guarded;
  const Dependence divisor = dependence.of(d.divisor);
  out.additive =
      divisor.kind == Dependence::Kind::kSum && !divisor.divided() && !divisor.plus_fixed;
  if (!out.additive && d.plus_fixed)
    return unknown(
        "a value that does not depend on the samples is added to a sum over a divisor "
        "that is not a sum",
        loss.producer);
  return out;
}

}  // namespace paddle::train
