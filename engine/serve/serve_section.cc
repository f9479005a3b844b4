// Apart from the reading, so that programs that only check the section need nothing else of the
// room.

#include "serve/serve_section.h"

#include "config/sections.h"

namespace paddle::serve {

using config::Schema;
using config::Spec;

Schema serve_schema() {
  Schema model;
  model.add("path", Spec::path().required().doc("a Hugging Face folder or a GGUF file"));
  model.add("kv", Spec::text().doc("type of the cached keys and values: f32, bf16 or int8"));
  model.add("activations", Spec::text().doc("how they are rounded for products: int16, int8, …"));
  model.add("weights_as", Spec::text().doc("type of the weights in memory, or as-is"));
  model.add("draft", Spec::word({"ngram", "none"}).doc("how the next tokens are drafted"));
  model.add("adapter", Spec::path().doc("a folder of PEFT"));
  model.add("cache", Spec::word({"plain", "paged"}).doc("how keys and values are kept"));
  model.add("cache_tokens",
            Spec::integer().at_least(0).doc("tokens of a paged cache; 0: by streams"));
  model.add("context", Spec::integer().at_least(0).doc("tokens of a text; 0: the model's"));
  model.add("chunk", Spec::integer().at_least(0).at_most(256).doc(
                         "tokens of prompts that a step reads at most; 0: 256"));
  model.add("family", Spec::path().doc("a file that describes another architecture"));
  Schema listen;
  listen.add("host", Spec::text().doc("the address to listen at"));
  listen.add("port", Spec::integer().at_least(0).at_most(65535).doc("0: a free one"));
  listen.add("keys", Spec::path().doc("a file with one API key a line"));
  Schema limits;
  limits.add("streams",
             Spec::integer().at_least(1).at_most(128).doc("sequences generated at a time"));
  limits.add("queue", Spec::integer().at_least(0).at_most(100'000).doc("requests that wait"));
  limits.add("step_time", Spec::duration().at_least(0.001).at_most(60).doc(
                              "how long a step may delay running sequences: 60ms"));
  limits.add("request_time",
             Spec::duration().at_least(0.001).at_most(1e6).doc("how long a request may take: 10m"));
  limits.add("step_ms", Spec::real().at_least(1).at_most(60'000).doc(
                            "step_time in milliseconds (older form)"));
  limits.add("request_s",
             Spec::real().at_least(0.001).at_most(1e6).doc("request_time in seconds (older form)"));
  Schema s;
  s.add("models", Spec::map_of(Spec::map(model).or_else(Spec::path()))
                      .doc("served name to a path, or to a map with the path and settings"));
  s.add("listen", Spec::map(listen).doc("where the server listens, and who may ask"));
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
