#include "transports/ucx/probe.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/forked_pes.h"

namespace shmemctl::test {
namespace {

TEST(UcxPresence, LastsAsLongAsItsOwner) {
  std::optional<UcxPresence> mine(std::in_place), other(std::in_place);
  const std::string name = mine->name();
  EXPECT_NE(name, other->name());
  for (int time = 0; time < 100; ++time)
    ASSERT_TRUE(UcxPresence::is_there(name));
  mine.reset();
  EXPECT_FALSE(UcxPresence::is_there(name));
  EXPECT_TRUE(UcxPresence::is_there(other->name()));
}

TEST(UcxPresence, EndsWithTheProcess) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor reader(ends[0]), writer(ends[1]);
  ForkedPes child(1, [&](int) {
    const UcxPresence presence;
    std::string name = presence.name();
    name.resize(100);
    require(::write(writer.get(), name.data(), 100) == 100, "the name is told");
    while (true)
      ::pause();
  });
  char name[100] = {};
  ASSERT_EQ(::read(reader.get(), name, sizeof name), 100);
  EXPECT_TRUE(UcxPresence::is_there(name));
  ::kill(child.pid(0), SIGKILL);
  EXPECT_EQ(child.ends()[0], "signal 9");
  EXPECT_FALSE(UcxPresence::is_there(name));
}

TEST(UcxPresence, NamesOfNobody) {
  EXPECT_FALSE(UcxPresence::is_there(""));
  EXPECT_FALSE(UcxPresence::is_there("shmemctl-ucx-nobody"));
  EXPECT_FALSE(UcxPresence::is_there(std::string(1000, 'x')));
}

} // namespace
} // namespace shmemctl::test
