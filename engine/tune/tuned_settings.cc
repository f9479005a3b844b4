#include "tune/tuned_settings.h"

#include "base/text.h"
#include "infer/streams.h"
#include "llm/runner.h"

namespace paddle::tune {

using config::Node;
using config::Schema;
using config::Section;
using config::Spec;

namespace {

/// "a model", "a language model".
const char* phrase(TunedSubject subject) {
  return subject == TunedSubject::kModel ? "a model" : "a language model";
}

/// Throws kConfig unless the document says that it is for the subject.
void check_subject(const Node& document, TunedSubject subject, const std::string& path) {
  const std::string expected = str("expected settings of ", phrase(subject),
                                   " that paddle-tune wrote (subject: ", word_of(subject), ")");
  if (const config::Entry* const entry = document.find_entry("extends"))
    throw Error(ErrorCode::kConfig, str("this is the config of a training run; ", expected),
                entry->key.location());
  const Node* const found = document.find("subject");
  if (!found)
    throw Error(ErrorCode::kConfig, str("there is no key 'subject'; ", expected),
                document.location());
  for (const TunedSubject each : {TunedSubject::kModel, TunedSubject::kLanguageModel}) {
    if (!found->is_scalar() || found->text != word_of(each)) continue;
    if (each == subject) return;
    throw Error(ErrorCode::kConfig,
                str("these are settings of ", phrase(each), ", but ", path, " is ",
                    subject == TunedSubject::kModel ? "not a language model" : phrase(subject)),
                found->location());
  }
  throw Error(ErrorCode::kConfig,
              str("'subject': expected ", word_of(TunedSubject::kModel), " or ",
                  word_of(TunedSubject::kLanguageModel), ", found ", found->describe()),
              found->location());
}

}  // namespace

const char* word_of(TunedSubject subject) {
  return subject == TunedSubject::kModel ? "model" : "language_model";
}

Schema tuned_schema(TunedSubject subject) {
  Schema s;
  s.add("subject", Spec::word({"model", "language_model"}).required());
  s.add("threads", Spec::integer().at_least(1).at_most(1024).doc("as --threads"));
  if (subject == TunedSubject::kModel) {
    s.add("streams", Spec::integer()
                         .at_least(1)
                         .at_most(static_cast<double>(infer::Streams::kMax))
                         .doc("as --streams"));
    s.add("batch", Spec::integer().at_least(1).at_most(1 << 20).doc("as --batch"));
    s.add("precision", Spec::word({"float32", "bfloat16", "float16"}).doc("as --precision"));
    s.add("kernels", Spec::path().doc("as --kernels"));
    s.add("codegen", Spec::boolean().doc("false: as --no-codegen"));
    s.add("batch_tiling", Spec::boolean().doc("false: as --no-batch-tiling"));
    s.add("winograd", Spec::boolean().doc("false: as --no-winograd"));
    return s;
  }
  s.add("chunk", Spec::integer()
                     .at_least(1)
                     .at_most(static_cast<double>(llm::Runner::kMaxRows))
                     .doc("as --chunk"));
  s.add("streams", Spec::integer().at_least(1).at_most(128).doc("as --streams"));
  s.add("kv", Spec::word({"f32", "bf16", "int8"}).doc("as --kv"));
  return s;
}

TunedSettings read_tuned(const std::string& file, TunedSubject subject, const std::string& path) {
  config::Diagnostics diagnostics;
  Node document = config::read_document(file, diagnostics);
  diagnostics.raise();
  check_subject(document, subject, path);
  tuned_schema(subject).resolve(document, "", diagnostics);
  diagnostics.raise();
  TunedSettings out;
  const Section s(document);
  const auto take_integer = [&](const char* key, std::optional<int64_t>& to) {
    if (s.has(key)) to = s.integer(key);
  };
  const auto take_text = [&](const char* key, std::string& to) {
    if (s.has(key)) to = s.text(key);
  };
  const auto take_flag = [&](const char* key, bool& to) {
    if (s.has(key)) to = s.boolean(key);
  };
  if (s.has("threads")) out.threads = static_cast<int>(s.integer("threads"));
  take_integer("batch", out.batch);
  take_text("precision", out.precision);
  take_text("kernels", out.kernels);
  take_flag("codegen", out.codegen);
  take_flag("batch_tiling", out.batch_tiling);
  take_flag("winograd", out.winograd);
  take_integer("chunk", out.chunk);
  take_integer("streams", out.streams);
  take_text("kv", out.kv);
  return out;
}

}  // namespace paddle::tune
