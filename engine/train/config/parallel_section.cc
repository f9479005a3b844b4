// The schema of the section `parallel:`, apart from its reading: programs that only check the
// section need nothing else of the room.

#include "config/sections.h"
#include "train/config/parallel_config.h"

namespace paddle::train {

using config::Schema;
using config::Spec;

Schema parallel_schema() {
  constexpr double kMaxRanks = 1024;
  Schema place;
  place.add(
      "match",
      Spec::list(Spec::text()).or_else(Spec::text()).required().doc("patterns of parameter names"));
  place.add("shard", Spec::map_of(Spec::word({"tensor"}))
                         .fallback("{}")
                         .doc("dim to axis, such as {1: tensor}; {}: whole on each rank"));
  Schema s;
  s.add("data", Spec::integer().at_least(1).at_most(kMaxRanks).fallback("1").doc(
                    "ranks that share each batch"));
  s.add("tensor", Spec::integer().at_least(1).at_most(kMaxRanks).fallback("1").doc(
                      "ranks that share each large weight"));
  s.add("expert", Spec::integer().at_least(1).at_most(kMaxRanks).fallback("1").doc(
                      "ranks of data among which the experts of a mixture are split: a divisor of "
                      "data"));
  s.add("sequence", Spec::boolean().fallback("false").doc(
                        "tensor splits the sequence between the products of layers, where it "
                        "splits nothing else"));
  s.add("pipeline", Spec::integer().at_least(1).at_most(kMaxRanks).fallback("1").doc(
                        "pipeline-parallel ranks: each has a contiguous part of the layers"));
  s.add("schedule", Spec::word(partition::schedule_names())
                        .fallback("1f1b")
                        .doc("the order in which a rank of pipeline works on micro-batches"));
  s.add("micro_batches", Spec::integer().at_least(1).at_most(1 << 20).doc(
                             "micro-batches of a batch (default: train.accumulate, or "
                             "the size of pipeline)"));
  s.add("chunks", Spec::integer().at_least(1).at_most(kMaxRanks).doc(
                      "stages of each rank of pipeline (default: 2 if interleaved, else 1)"));
  Schema recompute;
  recompute.add("layers", Spec::list(Spec::text())
                              .or_else(Spec::text())
                              .doc("patterns of layers, such as 'layer.*' or '*.attention'"));
  recompute.add("budget",
                Spec::text()
                    .or_else(Spec::integer())
                    .doc("memory of a training step, such as 8 GiB: as few layers as fit"));
  s.add("recompute",
        Spec::word({"none", "full"})
            .or_else(Spec::map(recompute))
            .fallback("none")
            .doc("values of the forward pass that the backward pass computes again; full: those "
                 "inside of each numbered layer"));
  s.add("sharding", Spec::integer().at_least(0).at_most(3).fallback("0").doc(
                        "what data-parallel ranks shard: 1 optimizer states, 2 also sums of "
                        "gradients, 3 also parameters"));
  s.add("bucket", Spec::text()
                      .or_else(Spec::integer())
                      .fallback("4 MiB")
                      .doc("gradients that the ranks of data sum together; a full bucket is summed "
                           "while the backward pass continues"));
  s.add("reduce",
        Spec::word({"update", "each"})
            .fallback("update")
            .doc("when ranks sum the gradients of micro-batches: once for an update, or in each "
                 "micro-batch, as they do with sharding 2 and 3"));
  s.add("overlap",
        Spec::word({"auto", "always", "never"})
            .fallback("auto")
            .doc("whether ranks exchange full buckets and sharded values in a thread of their own; "
                 "auto: between machines, and where ranks have cores to spare"));
  s.add("collectives",
        Spec::word({"tree", "ring"})
            .fallback("tree")
            .doc("how ranks sum: tree adds in an order that depends on nothing but the ranks; ring "
                 "exchanges between neighbors only, and its bits depend on sizes and buckets"));
  s.add(
      "transport",
      Spec::text()
          .or_else(Spec::map_of(Spec::any()))
          .doc("how ranks exchange messages: auto, tcp, gloo, mpi, or that of a plug-in, such as "
               "acme.ring, or {kind: acme.ring, …} with its keys; PADDLE_TRANSPORT has priority"));
  s.add("place",
        Spec::list(Spec::map(place))
            .fallback("[]")
            .doc("placement of weights; the first match decides, others follow from the model"));
  s.add("rules",
        Spec::map_of(Spec::text())
            .fallback("{}")
            .doc("operation to rule, such as {my_op: '[rows, n], [n, m] -> [rows, m]'}: the "
                 "dims that correspond, so that ranks work on parts of them"));
  return s;
}

void register_section() {
  config::register_section({.name = "parallel",
                            .owner = "paddle-train",
                            .doc = "how ranks share batches and weights",
                            .schema = parallel_schema});
}

}  // namespace paddle::train
