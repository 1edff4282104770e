// Processes as values: texts of /proc, and a recorded tree.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <pwd.h>

#include "src/instruments/inspect/process.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl::inspect {
namespace {

constexpr const char* stat_text =
    "42 (a) b (c) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 3 0 12345 1000 200 18446744073\n";

TEST(InspectProcess, MapsOfOddPaths) {
  const auto files =
      parse_maps("7f00-7f10 r--p 00000000 fd:01 12 /usr/lib/libnccl.so.2\n"
                 "7f10-7f20 r-xp 00010000 fd:01 12                         /usr/lib/libnccl.so.2\n"
                 "7f20-7f30 r-xp 00010000 fd:02 12 /opt/with a blank/liba\\012b.so (deleted)\n"
                 "7f30-7f40 rw-p 00000000 00:00 0 [heap]\n"
                 "7f40-7f50 rw-s 00000000 00:05 9 socket:[9]\n"
                 "7f50\n"
                 "garbage\n"
                 "\n"
                 "7f60-7f70 r--p 00000000 fd:01 13 /last");
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0], (MappedFile{"/usr/lib/libnccl.so.2", "fd:01", 12, false, "7f00-7f10"}));
  EXPECT_EQ(files[1], (MappedFile{"/opt/with a blank/liba\nb.so", "fd:02", 12, true, "7f20-7f30"}));
  EXPECT_EQ(files[2].path, "/last");
}

TEST(InspectProcess, StatOfANameWithParentheses) {
  const auto stat = parse_stat(stat_text);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->name, "a) b (c");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->cpu_ticks, 200U);
  EXPECT_EQ(stat->start_ticks, 12345U);
  for (const char* bad : {"", "42", "42 (a", "42 )a( S 1", "42 (a) S 7 42", "42 (a) SS 7 42 42"})
    EXPECT_FALSE(parse_stat(bad)) << bad;
}

TEST(InspectProcess, TcpConnections) {
  const auto rows = parse_tcp(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
      "   0: 0100007F:1F90 0100007F:C350 01 00000010:00000000 00:00000000 00000000  1000 0 77 1\n"
      "   1: 0A00000A:1F90 0B00000A:C350 0A 00000000:00000000 00:00000000 00000000  1000 0 78 1\n"
      "   2: 0000000000000000FFFF00000A00000A:0050 0000000000000000FFFF00000B00000A:0051 01 "
      "00000000:00000000 00:00000000 00000000  1000 0 79 1\n"
      "   3: 0G00000A:1F90 0B00000A:C350 0A\n");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].local, "127.0.0.1:8080");
  EXPECT_EQ(rows[0].state, "established");
  EXPECT_TRUE(rows[0].local_only);
  EXPECT_EQ(rows[0].queued_bytes, 16U);
  EXPECT_EQ(rows[0].inode, 77U);
  EXPECT_EQ(rows[1].state, "listen");
  EXPECT_FALSE(rows[1].local_only);
  EXPECT_EQ(rows[2].remote, "10.0.0.11:81");
}

TEST(InspectProcess, WordsVariablesAndStatus) {
  EXPECT_EQ(parse_words(std::string_view("a\0b c\0\0", 7)),
            (std::vector<std::string>{"a", "b c", ""}));
  EXPECT_TRUE(parse_words("").empty());
  const auto variables = parse_environment(std::string_view("A=1\0A=2\0=x\0B\0C=\0", 16));
  EXPECT_EQ(variables, (std::map<std::string, std::string>{{"A", "1"}, {"C", ""}}));
  EXPECT_EQ(parse_status("Name:\tx y\nSeccomp:\t2\nbad\n").at("Seccomp"), "2");
}

class RecordedProcess : public ::testing::Test {
protected:
  void SetUp() override {
    folder_.write("etc/passwd", "root:x:0:0::/:\nann:x:1000:1000::/:\n");
    folder_.write("proc/42/stat", stat_text);
    folder_.write("proc/42/status", "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n");
    folder_.write("proc/42/cmdline", std::string("python3\0train.py\0", 17));
    folder_.write("proc/42/environ", std::string("RANK=3\0PMI_RANK=9\0", 18));
    folder_.write("proc/42/maps", "1-2 r--p 0 fd:01 12 /usr/lib/libnccl.so.2\n");
    folder_.write("proc/42/limits", "Max locked memory  65536  65536  bytes\n");
    folder_.write("proc/42/task/42/stat", stat_text);
    folder_.write("proc/42/task/42/wchan", "futex_wait_queue");
    folder_.write("proc/42/task/42/syscall", "202 0x1 0x2");
    folder_.write("proc/42/net/tcp",
                  "   0: 0A00000A:1F90 0B00000A:C350 01 00000000:00000000 00:00000000 0 0 0 77\n"
                  "   1: 0A00000A:1F91 0B00000A:C350 01 00000000:00000000 00:00000000 0 0 0 78\n");
    link("exe", "/usr/bin/python3.11");
    link("ns/net", "net:[1]");
    link("fd/3", "socket:[77]");
    link("fd/4", "/dev/infiniband/uverbs1");
    link("fd/5", "/etc/passwd");
  }
  void link(const std::string& name, const std::string& target) {
    const std::filesystem::path path = folder_.path() + "/proc/42/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::create_symlink(target, path);
  }
  TemporaryFolder folder_;
};

TEST_F(RecordedProcess, IsReadWhole) {
  const auto process = read_process(Sysroot(folder_.path()), 42);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->user_name, "ann");
  EXPECT_EQ(process->exe, "/usr/bin/python3.11");
  EXPECT_EQ(process->command, (std::vector<std::string>{"python3", "train.py"}));
  ASSERT_TRUE(process->maps);
  EXPECT_EQ(process->maps->size(), 1U);
  EXPECT_EQ(process->namespaces.at("net"), "net:[1]");
  ASSERT_EQ(process->devices.size(), 1U);
  EXPECT_EQ(process->devices[0].target, "/dev/infiniband/uverbs1");
  ASSERT_EQ(process->connections.size(), 1U); // connections of the process's socket
  EXPECT_EQ(process->connections[0].remote, "10.0.0.11:50000");
  ASSERT_EQ(process->threads.size(), 1U);
  EXPECT_EQ(process->threads[0].wchan, "futex_wait_queue");
  EXPECT_EQ(process->threads[0].system_call, 202);
  EXPECT_TRUE(process->skipped.empty());
  const auto rank = rank_of(*process);
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->number, 3);
  EXPECT_EQ(rank->variable, "RANK");
}

TEST_F(RecordedProcess, WhatIsMissingIsSkipped) {
  std::filesystem::remove(folder_.path() + "/proc/42/environ");
  std::filesystem::remove(folder_.path() + "/proc/42/exe");
  const auto process = read_process(Sysroot(folder_.path()), 42);
  ASSERT_TRUE(process);
  EXPECT_FALSE(process->environment);
  ASSERT_EQ(process->skipped.size(), 2U);
  EXPECT_EQ(process->skipped[0].what, "environ");
  EXPECT_EQ(process->skipped[0].reason, "No such file or directory");
  EXPECT_EQ(process->skipped[1].what, "exe");
}

TEST_F(RecordedProcess, OneThatEndedIsNone) {
  EXPECT_FALSE(read_process(Sysroot(folder_.path()), 43));
  std::filesystem::remove(folder_.path() + "/proc/42/stat");
  EXPECT_FALSE(read_process(Sysroot(folder_.path()), 42));
}

TEST_F(RecordedProcess, ProcessesAndUsers) {
  const Sysroot sysroot(folder_.path());
  folder_.write("proc/self/stat", "");
  folder_.write("proc/7/stat", "");
  EXPECT_EQ(process_ids(sysroot), (std::vector<int>{7, 42}));
  EXPECT_EQ(user_id(sysroot, "ann"), 1000U);
  EXPECT_EQ(user_id(sysroot, "1001"), 1001U);
  EXPECT_FALSE(user_id(sysroot, "bob"));
  EXPECT_EQ(user_of(sysroot, 42), 1000U);
}

/// Users that only a directory service knows. getpwnam_r() and getpwuid_r() are replaced below.
TEST(UsersOfTheMachine, AreThoseOfTheUserDatabase) {
  const Sysroot live;
  EXPECT_EQ(user_id(live, "directory-user"), 424242U);
  EXPECT_EQ(user_name(live, 424242), "directory-user");
  EXPECT_FALSE(user_id(live, "no-such-user"));
  EXPECT_EQ(user_name(live, 424243), "424243");
  EXPECT_EQ(user_id(live, "424243"), 424243U);
  const TemporaryFolder folder;
  EXPECT_FALSE(user_id(Sysroot(folder.path()), "directory-user")) << "that of another machine";
  EXPECT_EQ(user_name(Sysroot(folder.path()), 424242), "424242");
}

/// Fills the entry of the directory's one user; needs more room than the first call gives.
int directory_entry(bool found, passwd* entry, char* text, std::size_t size_bytes,
                    passwd** result) {
  *result = nullptr;
  if (!found)
    return 0;
  if (size_bytes < 5000)
    return ERANGE;
  std::strcpy(text, "directory-user");
  entry->pw_name = text;
  entry->pw_uid = 424242;
  *result = entry;
  return 0;
}

} // namespace
} // namespace shmemctl::inspect

extern "C" int getpwnam_r(const char* name, passwd* entry, char* text, std::size_t size_bytes,
                          passwd** result) {
  return shmemctl::inspect::directory_entry(std::strcmp(name, "directory-user") == 0, entry, text,
                                            size_bytes, result);
}
extern "C" int getpwuid_r(uid_t id, passwd* entry, char* text, std::size_t size_bytes,
                          passwd** result) {
  return shmemctl::inspect::directory_entry(id == 424242, entry, text, size_bytes, result);
}
