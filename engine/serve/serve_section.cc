// Apart from the reading, so that programs that only check the section need nothing else of the
// room.

#include "serve/serve_section.h"

#include "base/text.h"
#include "config/sections.h"
#include "serve/serve_config.h"

namespace paddle::serve {

using config::Schema;
using config::Spec;

Schema serve_schema() {
  const ModelEntry m;
  const ServeConfig d;
  Schema model;
  model.add("path", Spec::path().required().doc(
                        "what paddle-infer takes: a run, a model file, an ONNX file, "
                        "a Hugging Face folder, a GGUF file, …"));
  model.add("kv",
            Spec::text().doc(str(
                "type of the cached keys and values: f32, bf16 or int8 (default: ", m.kv, ")")));
  model.add("activations",
            Spec::text().doc(str("how they are rounded for products: int16, int8, … (default: ",
                                 m.activations, ")")));
  model.add("weights_as", Spec::text().doc(str("type of the weights in memory, or as-is (default: ",
                                               m.weights_as, ")")));
  model.add("draft", Spec::word({"ngram", "none"})
                         .doc(str("how the next tokens are drafted (default: ", m.draft, ")")));
  model.add("adapter", Spec::path().doc("a folder of PEFT"));
  model.add("cache", Spec::word({"plain", "paged"})
                         .doc(str("how keys and values are kept (default: ", m.cache, ")")));
  model.add("cache_tokens",
            Spec::integer().at_least(0).doc(
                str("tokens of a paged cache; 0: by streams (default: ", m.cache_tokens, ")")));
  model.add("context", Spec::integer().at_least(0).doc(str(
                           "context length in tokens; 0: the model's (default: ", m.context, ")")));
  model.add("chunk",
            Spec::integer().at_least(0).at_most(256).doc(str(
                "tokens of prompts that a step reads at most; 0: 256 (default: ", m.chunk, ")")));
  model.add("family", Spec::path().doc("a file that describes another architecture"));
  model.add("weights", Spec::path().doc("weights of a model file, safetensors (default: random)"));
  model.add("function",
            Spec::text().doc(str("of a model file or a run (default: ", m.function, ")")));
  model.add("precision", Spec::word({"float32", "bfloat16", "float16"})
                             .doc(str("of products (default: ", m.precision, ")")));
  model.add("params", Spec::map_of(Spec::any()).doc("parameters of a model file: name to value"));
  model.add("max_batch",
            Spec::integer().at_least(1).at_most(65'536).doc("limits.max_batch of this model"));
  model.add("batch_wait",
            Spec::duration().at_least(0).at_most(10).doc("limits.batch_wait of this model"));
  model.add("follow", Spec::boolean().doc("the path is a store, whose current version is served, "
                                          "also when it changes (default: false)"));
  Schema listen;
  listen.add("host", Spec::text().doc(str("the address to listen at (default: ", d.host, ")")));
  listen.add("port", Spec::integer().at_least(0).at_most(65535).doc(
                         str("0: a free one (default: ", d.port, ")")));
  listen.add("keys", Spec::path().doc("a file with one API key a line (default: none)"));
  Schema limits;
  limits.add("streams", Spec::integer().at_least(1).at_most(128).doc(
                            str("sequences generated at a time (default: ", d.streams, ")")));
  limits.add("queue", Spec::integer().at_least(0).at_most(100'000).doc(
                          str("requests that wait (default: ", d.queue, ")")));
  limits.add("max_batch", Spec::integer().at_least(1).at_most(65'536).doc(
                              str("largest batch of dynamic batching, in rows; 1: no batching "
                                  "(default: ",
                                  d.max_batch, ")")));
  limits.add("batch_wait", Spec::duration().at_least(0).at_most(10).doc(
                               "how long a request waits for others to form a batch (default: 0)"));
  limits.add("step_time",
             Spec::duration().at_least(0.001).at_most(60).doc(
                 str("how long a step may delay running sequences (default: ", d.step_ms, "ms)")));
  limits.add("request_time", Spec::duration().at_least(0.001).at_most(1e6).doc(
                                 str("how long a request may take (default: ", d.request_s, "s)")));
  limits.add("step_ms", Spec::real().at_least(1).at_most(60'000).doc(
                            "step_time in milliseconds (older form)"));
  limits.add("request_s",
             Spec::real().at_least(0.001).at_most(1e6).doc("request_time in seconds (older form)"));
  Schema s;
  s.add("models", Spec::map_of(Spec::map(model).or_else(Spec::path()))
                      .doc("served name to a path, or to a map with the path and settings"));
  s.add("listen", Spec::map(listen).doc("where the server listens, and who may send requests"));
  s.add("limits", Spec::map(limits).doc("how much it does at a time"));
  return s;
}

void register_section() {
  config::register_section({.name = "serve",
                            .owner = "paddle-serve",
                            .doc = "what paddle-serve serves",
                            .schema = serve_schema});
}

}  // namespace paddle::serve
