// The checks of transports, tables and readers: the engine's own pass them through the C structs of
// plug-ins, as do the examples, and faults in the structs are found.

#include "conformance/kinds.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>

#include "config/kind_keys.h"
#include "conformance/exported.h"
#include "conformance/readers.h"
#include "conformance/tables.h"
#include "conformance/transports.h"
#include "plugin/plugin.h"
#include "plugin/reader_adapter.h"

namespace paddle::conformance {
namespace {

constexpr Extent kQuick{.quick = true, .seed = 3};

void expect_transport(const std::string& kind) {
  for (const std::string& check : transport_checks(kQuick))
    EXPECT_EQ(check_transport({kind}, check, kQuick), "") << kind << " " << check;
}

void expect_table(const program::TableKind& kind) {
  for (const std::string& check : table_checks(kQuick))
    EXPECT_EQ(check_table(kind, {}, check, kQuick), "") << kind.name << " " << check;
}

std::string client(const std::string& name) {
  return std::string(PADDLE_PLUGIN_CLIENTS) + "/" + name + ".so";
}

class Transports : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Transports, testing::Values("auto", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Transports, OfTheEngineDoWhatTheyShould) { expect_transport(GetParam()); }

TEST_P(Transports, OfTheEngineAreTheSameThroughTheCStruct) {
  const std::string name = std::string("exported_") + GetParam();
  comm::transport_kinds().add({transport_kind_of(name, GetParam(), exported_transport_functions())},
                              {"test"});
  expect_transport(name);
  comm::transport_kinds().remove({name});
}

TEST(Transports, OfTheExampleDoWhatTheyShould) {
  const plugin::Plugin& loaded = plugin::load(client("ring"));
  EXPECT_EQ(loaded.transports, std::vector<std::string>{"ring.ring"});
  expect_transport("ring.ring");
}

TEST(Transports, WithFaultsAreFound) {
  struct Fault {
    const char* name;
    const char* check;
    void (*put)(paddle_transport&);
  };
  static const paddle_transport good = exported_transport_functions();
  const Fault faults[] = {
      {"lost_tail", "sizes/2",
       [](paddle_transport& t) {
         t.exchange = [](void* state, paddle_call* call, uint32_t kind,
                         const paddle_message* const* sends, uint32_t send_count,
                         const paddle_message* const* receives, uint32_t receive_count) {
           const auto status =
               good.exchange(state, call, kind, sends, send_count, receives, receive_count);
           for (uint32_t i = 0; i < receive_count; ++i)
             for (uint32_t p = 0; p < receives[i]->piece_count; ++p)
               if (receives[i]->sizes[p] > 1)
                 static_cast<char*>(receives[i]->pieces[p])[receives[i]->sizes[p] - 1] = 0;
           return status;
         };
       }},
      {"one_tag", "messages/2",
       [](paddle_transport& t) {
         t.post = [](void* state, paddle_call* call, int32_t peer, uint32_t, const void* bytes,
                     size_t size) { return good.post(state, call, peer, 0, bytes, size); };
         t.take = [](void* state, paddle_call* call, int32_t peer, uint32_t, void* bytes,
                     size_t size) { return good.take(state, call, peer, 0, bytes, size); };
       }},
      {"same_kind", "mismatch",
       [](paddle_transport& t) {
         t.exchange = [](void* state, paddle_call* call, uint32_t,
                         const paddle_message* const* sends, uint32_t send_count,
                         const paddle_message* const* receives, uint32_t receive_count) {
           return good.exchange(state, call, 0, sends, send_count, receives, receive_count);
         };
       }},
      {"swallowed", "timeout",
       [](paddle_transport& t) {
         t.exchange = [](void* state, paddle_call* call, uint32_t kind,
                         const paddle_message* const* sends, uint32_t send_count,
                         const paddle_message* const* receives, uint32_t receive_count) {
           (void)good.exchange(state, call, kind, sends, send_count, receives, receive_count);
           return paddle_status{PADDLE_OK};
         };
       }},
      {"wrong_status", "abort",
       [](paddle_transport& t) {
         t.take = [](void* state, paddle_call* call, int32_t peer, uint32_t tag, void* bytes,
                     size_t size) {
           return good.take(state, call, peer, tag, bytes, size) ? paddle_status{PADDLE_DATA}
                                                                 : paddle_status{PADDLE_OK};
         };
       }},
  };
  for (const Fault& fault : faults) {
    paddle_transport faulty = good;
    fault.put(faulty);
    comm::transport_kinds().add({transport_kind_of(fault.name, "tcp", faulty)}, {"test"});
    EXPECT_NE(check_transport({fault.name}, fault.check, kQuick), "") << fault.name;
    comm::transport_kinds().remove({fault.name});
  }
}

TEST(Tables, OfTheEngineAreTheSameThroughTheCStruct) {
  expect_table(*program::table_kinds().find("memory"));
  expect_table(table_kind_of("exported", exported_table_functions()));
}

TEST(Tables, OfTheExampleDoWhatTheyShould) {
  const plugin::Plugin& loaded = plugin::load(client("file_rows"));
  EXPECT_EQ(loaded.tables, std::vector<std::string>{"file_rows.file_rows"});
  expect_table(*program::table_kinds().find("file_rows.file_rows"));
}

TEST(Tables, WithFaultsAreFound) {
  struct Fault {
    const char* name;
    const char* check;
    void (*put)(paddle_table&);
  };
  static const paddle_table good = exported_table_functions();
  const Fault faults[] = {
      {"zeros", "empty",
       [](paddle_table& t) {
         t.read = [](void* state, paddle_call* call, const uint64_t* keys, size_t count, int32_t,
                     void* rows) {
           return good.read(state, call, keys, count, PADDLE_MISSING_ZERO, rows);
         };
       }},
      {"skips_one", "history/sgd",
       [](paddle_table& t) {
         t.update = [](void* state, paddle_call* call, const uint64_t* keys, size_t count,
                       const void* gradients, const void* inputs) {
           return good.update(state, call, keys, count > 3 ? count - 1 : count, gradients, inputs);
         };
       }},
      {"miscounts", "history/adam",
       [](paddle_table& t) { t.count = [](void* state) { return good.count(state) / 2 * 2; }; }},
      {"restores_nothing", "files",
       [](paddle_table& t) {
         t.restore = [](void* state, paddle_call* call, const uint64_t* keys, const void* records,
                        size_t count) {
           return good.restore(state, call, keys, records, count > 1 ? count - 1 : count);
         };
       }},
  };
  for (const Fault& fault : faults) {
    paddle_table faulty = good;
    fault.put(faulty);
    std::string wrong;
    try {
      wrong = check_table(table_kind_of(fault.name, faulty), {}, fault.check, kQuick);
    } catch (const Error& e) {
      wrong = e.message();
    }
    EXPECT_NE(wrong, "") << fault.name;
  }
}

TEST(Tables, KeysThatDoNotRiseAreAnError) {
  static const paddle_table good = exported_table_functions();
  paddle_table faulty = good;
  faulty.content = [](void*, paddle_call*, paddle_record_visitor visitor, void* context) {
    const uint64_t keys[] = {4, 2};
    const std::byte memory[64] = {};
    const void* const records[] = {memory, memory};
    return visitor(context, keys, records, 2);
  };
  try {
    check_table(table_kind_of("falling", faulty), {}, "empty", kQuick);
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "falling: content: its keys do not rise");
  }
}

// --- readers ---

/// A reader of numbers that are drawn, in which tests put faults.
struct Drawn {
  static paddle_reader functions() {
    paddle_reader out{};
    out.struct_size = sizeof out;
    out.name = "drawn";
    out.keys = "size: {type: integer, default: 20, doc: samples}";
    out.open = [](paddle_call*, const paddle_options* options, void** state) -> paddle_status {
      *state = new int64_t(std::stoll(options->values[0]));
      return PADDLE_OK;
    };
    out.describe = [](void*) { return "x: int64[2]\nlabel: uint8[] classes 10\n"; };
    out.size = [](void* state) { return *static_cast<int64_t*>(state); };
    out.read = [](void*, paddle_call*, int64_t index, uint64_t seed, uint64_t epoch,
                  const paddle_sample* sample) -> paddle_status {
      const int64_t shape = 2;
      auto* const x = static_cast<int64_t*>(sample->field(sample->context, 0, &shape, 1));
      auto* const label = static_cast<uint8_t*>(sample->field(sample->context, 1, nullptr, 0));
      if (!x || !label) return PADDLE_DATA;
      x[0] = index;
      x[1] = static_cast<int64_t>(seed * 1000 + epoch);
      *label = static_cast<uint8_t>(index % 10);
      return PADDLE_OK;
    };
    out.close = [](void* state) { delete static_cast<int64_t*>(state); };
    return out;
  }
};

/// The first check that fails, with what it says; "" if all pass.
std::string failures_of(const std::string& name, const paddle_reader& functions) {
  static std::deque<plugin::ReaderContext> contexts;
  const plugin::ReaderContext& context = contexts.emplace_back(plugin::ReaderContext{
      "drawn 1.0.0", name, functions, config::read_kind_keys(functions.keys, "drawn", {})});
  data::dataset_kinds().add({plugin::dataset_kind_of(context)}, {"test"});
  std::string out;
  for (const std::string& check : reader_checks()) try {
      const std::string wrong = check_reader(name, {"size=30"}, check, kQuick);
      if (!wrong.empty() && out.empty()) out = str(check, ": ", wrong);
    } catch (const Error& e) {
      if (out.empty()) out = str(check, ": ", e.message());
    }
  data::dataset_kinds().remove({name});
  return out;
}

TEST(Readers, ThatDependOnTheirArgumentsPass) {
  EXPECT_EQ(failures_of("drawn", Drawn::functions()), "");
}

TEST(Readers, WithFaultsAreFound) {
  static std::atomic<int64_t> calls = 0;
  struct Fault {
    const char* name;
    const char* message;
    void (*put)(paddle_reader&);
  };
  const Fault faults[] = {
      {"counts", "order: sample",
       [](paddle_reader& r) {
         r.read = [](void* state, paddle_call* call, int64_t, uint64_t seed, uint64_t epoch,
                     const paddle_sample* sample) {
           return Drawn::functions().read(state, call, calls++, seed, epoch, sample);
         };
       }},
      {"shape",
       "describe: shape: shape sample 0: the field 'x' has the shape [2, 2], the reader declares",
       [](paddle_reader& r) {
         r.read = [](void*, paddle_call*, int64_t, uint64_t, uint64_t,
                     const paddle_sample* sample) -> paddle_status {
           const int64_t shape[] = {2, 2};
           sample->field(sample->context, 0, shape, 2);
           return PADDLE_OK;
         };
       }},
      {"negative", "the field 'x' has the shape [-2]",
       [](paddle_reader& r) {
         r.describe = [](void*) { return "x: int64[-1]"; };
         r.read = [](void*, paddle_call*, int64_t, uint64_t, uint64_t,
                     const paddle_sample* sample) -> paddle_status {
           const int64_t shape = -2;
           sample->field(sample->context, 0, &shape, 1);
           return PADDLE_OK;
         };
       }},
      {"huge", "the field 'x' has the shape",
       [](paddle_reader& r) {
         r.describe = [](void*) { return "x: int64[-1, -1]"; };
         r.read = [](void*, paddle_call*, int64_t, uint64_t, uint64_t,
                     const paddle_sample* sample) -> paddle_status {
           const int64_t shape[] = {int64_t{1} << 40, int64_t{1} << 40};
           sample->field(sample->context, 0, shape, 2);
           return PADDLE_OK;
         };
       }},
      {"missing", "the reader gives no field 'x'",
       [](paddle_reader& r) {
         r.read = [](void*, paddle_call*, int64_t, uint64_t, uint64_t,
                     const paddle_sample*) -> paddle_status { return PADDLE_OK; };
       }},
      {"beyond", "the reader gives field 7 of 2",
       [](paddle_reader& r) {
         r.read = [](void*, paddle_call*, int64_t, uint64_t, uint64_t,
                     const paddle_sample* sample) -> paddle_status {
           sample->field(sample->context, 7, nullptr, 0);
           return PADDLE_OK;
         };
       }},
      {"epoch", "resume: sample",
       [](paddle_reader& r) {
         r.open = [](paddle_call* call, const paddle_options* options, void** state) {
           ++calls;
           return Drawn::functions().open(call, options, state);
         };
         r.read = [](void* state, paddle_call* call, int64_t index, uint64_t seed, uint64_t,
                     const paddle_sample* sample) {
           return Drawn::functions().read(state, call, index, seed,
                                          static_cast<uint64_t>(calls.load()), sample);
         };
       }},
      {"undeclared", "describe: undeclared: describe: no fields",
       [](paddle_reader& r) { r.describe = [](void*) { return ""; }; }},
      {"print", "fingerprint: the fingerprint is another one",
       [](paddle_reader& r) {
         r.fingerprint = [](void*) { return static_cast<uint64_t>(calls++); };
       }},
  };
  for (const Fault& fault : faults) {
    paddle_reader faulty = Drawn::functions();
    fault.put(faulty);
    const std::string wrong = failures_of(fault.name, faulty);
    EXPECT_NE(wrong.find(fault.message), std::string::npos) << fault.name << ": " << wrong;
  }
}

TEST(Readers, FieldsAreLines) {
  const data::Field image = plugin::parse_field("image: uint8[3, -1,-1]");
  EXPECT_EQ(image.name, "image");
  EXPECT_EQ(image.dtype, DType::kU8);
  EXPECT_EQ(image.shape, (Dims{3, -1, -1}));
  EXPECT_EQ(plugin::parse_field("label: int64[] classes 12").class_count, 12);
  for (const char* line :
       {"", "x", "x: float32", "x float32[2]", "x: float33[2]", "x: float32[2", "x: float32]2[",
        "x: float32[a]", "x: float32[-2]", "x: float32[99999999999999999999]", "x: string[]",
        "x: uint4[2]", "x: float32[2] class 3", "x: float32[2] classes 0", "a b: float32[]",
        ": float32[]"})
    EXPECT_THROW(plugin::parse_field(line), Error) << line;
}

TEST(Readers, KeysAreDeclaredInYaml) {
  const auto keys = config::read_kind_keys(
      "path: {type: path, required: true}\nrate: {type: real, default: 0.5, doc: of it}", "r", {});
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[1].fallback, "0.5");
  for (const char* yaml : {"[1]", "a: 1", "a: {}", "a: {type: number}", "kind: {type: text}",
                           "a: {type: integer, default: x}", "a: {type: text, docs: x}",
                           "a: {type: text, required: 3}", "a: ["})
    EXPECT_THROW(config::read_kind_keys(yaml, "r", {"kind"}), Error) << yaml;
}

}  // namespace
}  // namespace paddle::conformance
