// The checks of transports and tables: the engine's own pass them through the C structs of
// plug-ins, as do the examples, and faults in the structs are found.

#include "conformance/kinds.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "conformance/exported.h"
#include "conformance/tables.h"
#include "conformance/transports.h"
#include "plugin/plugin.h"

namespace paddle::conformance {
namespace {

constexpr Extent kQuick{.quick = true, .seed = 3};

void expect_transport(const std::string& kind) {
  for (const std::string& check : transport_checks(kQuick))
    EXPECT_EQ(check_transport(kind, check, kQuick), "") << kind << " " << check;
}

void expect_table(const program::TableKind& kind) {
  for (const std::string& check : table_checks(kQuick))
    EXPECT_EQ(check_table(kind, check, kQuick), "") << kind.name << " " << check;
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
    EXPECT_NE(check_transport(fault.name, fault.check, kQuick), "") << fault.name;
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
      wrong = check_table(table_kind_of(fault.name, faulty), fault.check, kQuick);
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
    check_table(table_kind_of("falling", faulty), "empty", kQuick);
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "falling: content: its keys do not rise");
  }
}

}  // namespace
}  // namespace paddle::conformance
