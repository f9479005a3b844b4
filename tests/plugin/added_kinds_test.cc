// Descriptors of transports, tables and readers: what does not fit is rejected before anything is
// registered, and structs of other sizes are read.

#include "plugin/added_kinds.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace paddle::plugin {
namespace {

/// A transport with all functions.
paddle_transport transport() {
  paddle_transport out{};
  out.struct_size = sizeof out;
  out.name = "ring";
  out.open = [](paddle_call*, const paddle_rank*, void**) -> paddle_status { return 0; };
  out.exchange = [](void*, paddle_call*, uint32_t, const paddle_message* const*, uint32_t,
                    const paddle_message* const*, uint32_t) -> paddle_status { return 0; };
  out.post = [](void*, paddle_call*, int32_t, uint32_t, const void*, size_t) -> paddle_status {
    return 0;
  };
  out.take = [](void*, paddle_call*, int32_t, uint32_t, void*, size_t) -> paddle_status {
    return 0;
  };
  out.abort = [](void*, const char*) {};
  out.close = [](void*) {};
  out.can_overlap = [](void*) -> int32_t { return 1; };
  return out;
}

/// The message with which these transports are rejected; "" if they are read into `parts`.
std::string rejection(const std::vector<paddle_transport>& transports, Parts& parts) {
  std::vector<const paddle_transport*> list;
  for (const paddle_transport& each : transports)
    list.push_back(each.name && std::string(each.name) == "null" ? nullptr : &each);
  paddle_plugin given{};
  given.struct_size = sizeof given;
  given.transport_count = static_cast<uint32_t>(list.size());
  given.transports = list.data();
  const std::string path = "acme.so";
  try {
    read_transports(Descriptors(path), given, path, parts);
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kDevice);
    return e.message();
  }
}

Plugin acme() {
  Plugin out;
  out.provider = {"acme", "1.0.0"};
  return out;
}

TEST(AddedKinds, AreReadWithTheSizeThatTheyHave) {
  Parts parts(acme());
  EXPECT_EQ(rejection({transport()}, parts), "");
  ASSERT_EQ(parts.transports.size(), 1u);
  EXPECT_EQ(parts.transports[0].name, "acme.ring");
  EXPECT_NE(parts.transports[0].functions.can_overlap, nullptr);
  // Of an older interface: what lies beyond its end is not read.
  Parts older(acme());
  paddle_transport shorter = transport();
  shorter.struct_size = PADDLE_END_OF(paddle_transport, close);
  EXPECT_EQ(rejection({shorter}, older), "");
  EXPECT_EQ(older.transports[0].functions.can_overlap, nullptr);
  // Of a later one.
  Parts newer(acme());
  struct Longer {
    paddle_transport known = transport();
    void* more = nullptr;
  } longer;
  longer.known.struct_size = sizeof longer;
  const paddle_transport* const list[] = {&longer.known};
  paddle_plugin given{};
  given.transport_count = 1;
  given.transports = list;
  const std::string path = "acme.so";
  read_transports(Descriptors(path), given, path, newer);
  EXPECT_EQ(newer.transports.size(), 1u);
}

TEST(AddedKinds, ThatDoNotFitAreRejected) {
  Parts parts(acme());
  paddle_transport bad = transport();
  bad.take = nullptr;
  EXPECT_EQ(rejection({bad}, parts),
            "acme.so: transport ring: open, exchange, post, take, abort and close must be set");
  bad = transport();
  bad.struct_size = 8;
  EXPECT_NE(rejection({bad}, parts).find("struct_size 8 is too small"), std::string::npos);
  for (const char* name : {"", "Ring", "a.b", "a b"}) {
    bad = transport();
    bad.name = name;
    EXPECT_NE(rejection({bad}, parts).find("expected a name of lower-case letters"),
              std::string::npos)
        << name;
  }
  bad.name = "null";
  EXPECT_EQ(rejection({bad}, parts), "acme.so: transport 0: is null");
  EXPECT_EQ(rejection({transport(), transport()}, parts),
            "acme.so: transport 1: there are two of the name 'ring'");
  paddle_plugin given{};
  given.table_count = given.reader_count = given.transport_count = 1000000;
  const std::string path = "acme.so";
  EXPECT_THROW(read_transports(Descriptors(path), given, path, parts), Error);
  EXPECT_THROW(read_tables(Descriptors(path), given, path, parts), Error);
  EXPECT_THROW(read_readers(Descriptors(path), given, "acme.so", parts), Error);
  paddle_table table{};
  table.struct_size = sizeof table;
  table.name = "rows";
  const paddle_table* const tables[] = {&table};
  given.table_count = 1;
  given.tables = tables;
  EXPECT_THROW(read_tables(Descriptors(path), given, path, parts), Error);
  paddle_reader reader{};
  reader.struct_size = sizeof reader;
  reader.name = "rows";
  const paddle_reader* const readers[] = {&reader};
  given.reader_count = 1;
  given.readers = readers;
  EXPECT_THROW(read_readers(Descriptors(path), given, "acme.so", parts), Error);
}

}  // namespace
}  // namespace paddle::plugin
