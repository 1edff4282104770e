// Files in memory, as a tar file and as an archive; archives that are damaged or hostile.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/base/file_tree.h"
#include "src/base/sysroot.h"
#include "src/base/zstd.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl {
namespace {

FileEntry recorded_file(std::string content, int error_number = 0) {
  FileEntry entry;
  entry.kind = FileEntry::Kind::file;
  entry.content = std::move(content);
  entry.error_number = error_number;
  return entry;
}

FileEntry recorded_link(std::string target) {
  FileEntry entry;
  entry.kind = FileEntry::Kind::link;
  entry.content = std::move(target);
  return entry;
}

FileTree small_tree() {
  FileTree tree;
  EXPECT_TRUE(tree.add("/sys/devices/pci0000:15/net/eth0/mtu", recorded_file("9000\n")));
  EXPECT_TRUE(tree.add("/sys/class/net/eth0", recorded_link("../../devices/pci0000:15/net/eth0")));
  EXPECT_TRUE(tree.add("/sys/class/net/eth10", recorded_link("/sys/devices/pci0000:15/net/eth0")));
  EXPECT_TRUE(tree.add("/proc/7/fd/3", recorded_link("socket:[4711]")));
  EXPECT_TRUE(tree.add("/proc/7/environ", recorded_file("", EACCES)));
  EXPECT_TRUE(tree.add("/empty", FileEntry()));
  return tree;
}

/// One entry of a tar file, as any tar may write it.
std::string tar_entry(const std::string& name, char type, const std::string& body = "",
                      const std::string& target = "", const char* size = nullptr) {
  std::string block(512, '\0');
  const auto set = [&block](std::size_t at, const std::string& text) {
    std::copy(text.begin(), text.end(), block.begin() + static_cast<std::ptrdiff_t>(at));
  };
  char octal[16];
  set(0, name);
  set(100, "0000644");
  std::snprintf(octal, sizeof octal, "%011zo", body.size());
  set(124, size != nullptr ? size : octal);
  block[156] = type;
  set(157, target);
  set(257, "ustar");
  set(263, "00");
  set(148, "        ");
  unsigned sum = 0;
  for (const char byte : block)
    sum += static_cast<unsigned char>(byte);
  std::snprintf(octal, sizeof octal, "%06o", sum);
  set(148, octal);
  block[154] = '\0';
  std::string whole = block + body;
  whole.append((512 - body.size() % 512) % 512, '\0');
  return whole;
}

std::string tar_of(const std::string& entries) {
  return entries + std::string(1024, '\0');
}

/// The message of the error; "" if there is none.
std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_FALSE(error.fix().empty());
    return error.message();
  }
  return "";
}

std::string tar_refusal(const std::string& bytes) {
  return refusal([&bytes] { read_tar(bytes, "node.tar"); });
}

TEST(FileTreeTest, AnArchiveReadsBackAsItWas) {
  const FileTree tree = small_tree();
  const FileTree again = read_archive(write_archive(tree), "node.tar.zst");
  ASSERT_EQ(again.entries().size(), tree.entries().size());
  for (const auto& [path, entry] : tree.entries()) {
    const FileEntry* other = again.find(path);
    ASSERT_NE(other, nullptr) << path;
    EXPECT_EQ(other->kind, entry.kind) << path;
    EXPECT_EQ(other->content, entry.content) << path;
    EXPECT_EQ(other->error_number, entry.error_number) << path;
  }
  EXPECT_EQ(write_tar(again), write_tar(tree)); // the same bytes for the same tree
}

TEST(FileTreeTest, LongPathsAndTargets) {
  FileTree tree;
  const std::string folder = "/" + std::string(99, 'a') + "/" + std::string(120, 'b');
  const std::string target = "../" + std::string(200, 'c');
  ASSERT_TRUE(tree.add(folder + "/file", recorded_file("x")));
  ASSERT_TRUE(tree.add(folder + "/link", recorded_link(target)));
  const FileTree again = read_tar(write_tar(tree), "node.tar");
  ASSERT_NE(again.find(folder + "/file"), nullptr);
  EXPECT_EQ(again.find(folder + "/file")->content, "x");
  ASSERT_NE(again.find(folder + "/link"), nullptr);
  EXPECT_EQ(again.find(folder + "/link")->content, target);
}

TEST(FileTreeTest, WhatOtherTarsWrite) {
  const FileTree tree = read_tar(
      tar_of(tar_entry("./", '5') + tar_entry("./sys/", '5') + tar_entry("./sys/a", '0', "1") +
             tar_entry("././@LongLink", 'L', "sys/long") + tar_entry("sys/lo", '0', "2") +
             tar_entry("g", 'g', "13 comment=x\n") + tar_entry("sys/b", '2', "", "a")),
      "node.tar");
  ASSERT_NE(tree.find("/sys/a"), nullptr);
  EXPECT_EQ(tree.find("/sys/a")->content, "1");
  ASSERT_NE(tree.find("/sys/long"), nullptr);
  EXPECT_EQ(tree.find("/sys/long")->content, "2");
  EXPECT_EQ(tree.find("/sys/lo"), nullptr);
  ASSERT_NE(tree.find("/sys/b"), nullptr);
  EXPECT_EQ(tree.find("/sys/b")->content, "a");
}

TEST(FileTreeTest, HostileEntriesAreRefused) {
  const struct {
    std::string entries;
    const char* words;
  } cases[] = {
      {tar_entry("../etc/passwd", '0', "x"), "leaves the archive"},
      {tar_entry("sys/../../x", '0', "x"), "leaves the archive"},
      {tar_entry("/etc/passwd", '0', "x"), "is an absolute path"},
      {tar_entry("a", '0', "x") + tar_entry("a", '0', "y"), "twice"},
      {tar_entry("a", '0', "x") + tar_entry("./a", '2', "", "b"), "twice"},
      {tar_entry("a", '2', "", "/etc") + tar_entry("a/passwd", '0', "x"), "not a folder"},
      {tar_entry("a", '0', "x") + tar_entry("a/b", '0', "x"), "not a folder"},
      {tar_entry("a", '1', "", "b"), "hard link"},
      {tar_entry("a", '3'), "neither a file"},
      {tar_entry("a", '6'), "neither a file"},
      {tar_entry("a", '2'), "invalid target"},
      {tar_entry("", '0', "x"), "twice"},
      {tar_entry("x", 'x', "99 path=a\n") + tar_entry("a", '0'), "pax header"},
      {tar_entry("x", 'x', "0 path=a\n") + tar_entry("a", '0'), "pax header"},
      {tar_entry("x", 'x', "2000000 path=a\n") + tar_entry("a", '0'), "pax header"},
      {tar_entry("x", 'x', "18 size=999999999\n") + tar_entry("a", '0'), "8 GiB"},
      {tar_entry("././@LongLink", 'L', std::string(1100, 'a')) + tar_entry("a", '0'),
       "path of more"},
      {tar_entry("././@LongLink", 'L', std::string(300, 'a')) + tar_entry("a", '0'),
       "name of more"},
  };
  for (const auto& each : cases) {
    const std::string message = tar_refusal(tar_of(each.entries));
    EXPECT_NE(message, "") << each.words;
    EXPECT_NE(message.find(each.words), std::string::npos) << message;
  }
  const auto below = [](std::size_t folders) {
    std::string path = "a";
    for (std::size_t i = 0; i < folders; ++i)
      path = "a/" + path;
    return tar_of(tar_entry("././@LongLink", 'L', path) + tar_entry("a", '0'));
  };
  EXPECT_EQ(tar_refusal(below(64)), "");
  EXPECT_NE(tar_refusal(below(65)).find("more than 64 folders above it"), std::string::npos);
}

TEST(FileTreeTest, DamageIsFound) {
  const std::string whole = write_tar(small_tree());
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{511}, std::size_t{512},
                                 whole.size() - 1024, whole.size() - 1500})
    EXPECT_NE(tar_refusal(whole.substr(0, size)), "") << size;
  std::string other = whole;
  other[3] = static_cast<char>(other[3] ^ 1); // a name, without a new checksum
  EXPECT_NE(tar_refusal(other), "");
  EXPECT_NE(tar_refusal(std::string(2048, 'x')), "");
  EXPECT_NE(tar_refusal(tar_of(tar_entry("a", '0', "", "", "77777777777"))).find("is larger than"),
            std::string::npos);
  EXPECT_NE(tar_refusal(tar_of(tar_entry("a", '0', "", "", "\x80zzzzzzzzzz"))), "");
}

TEST(FileTreeTest, ArchivesThatAreCutOffOrUnpackTooMuch) {
  const std::string packed = write_archive(small_tree());
  EXPECT_TRUE(is_zstd(packed));
  for (std::size_t size = 0; size < packed.size(); ++size)
    EXPECT_NE(refusal([&] { read_archive(packed.substr(0, size), "node.tar.zst"); }), "") << size;
  std::string other = packed;
  other[other.size() / 2] = static_cast<char>(other[other.size() / 2] ^ 0x55);
  EXPECT_NE(refusal([&] { read_archive(other, "node.tar.zst"); }), "");
  const std::string bomb = zstd_compressed(std::string(std::size_t{1} << 20, '\0'));
  EXPECT_LT(bomb.size(), 1000U);
  EXPECT_NE(refusal([&] { zstd_decompressed(bomb, "bomb", 1 << 10); }).find("unpacks to more"),
            std::string::npos);
  EXPECT_EQ(zstd_decompressed(bomb, "bomb", std::size_t{1} << 20).size(), std::size_t{1} << 20);
  EXPECT_EQ(zstd_decompressed(packed + zstd_compressed(""), "two", 1 << 20),
            write_tar(small_tree()));
}

TEST(FileTreeTest, ASysrootReadsATreeAsAFolder) {
  const Sysroot sysroot(std::make_shared<const FileTree>(small_tree()), "node.tar.zst");
  EXPECT_FALSE(sysroot.live());
  EXPECT_EQ(sysroot.root(), "node.tar.zst");
  EXPECT_EQ(sysroot.read_line("/sys/class/net/eth0/mtu"), "9000");
  EXPECT_EQ(sysroot.read_line("/sys/class/net/eth10/mtu"), "9000");
  EXPECT_EQ(sysroot.read("/sys/class/net/eth0/mtu", 2), "90");
  EXPECT_EQ(sysroot.realpath("/sys/class/net/eth0"), "/sys/devices/pci0000:15/net/eth0");
  EXPECT_EQ(sysroot.list("/sys/class/net"), (std::vector<std::string>{"eth0", "eth10"}));
  EXPECT_EQ(sysroot.list("/sys/class/net/eth0"), std::vector<std::string>{"mtu"});
  EXPECT_TRUE(sysroot.is_directory("/empty"));
  EXPECT_FALSE(sysroot.is_directory("/sys/class/net/eth0/mtu"));
  EXPECT_FALSE(sysroot.exists("/sys/class/net/eth1"));
  EXPECT_EQ(sysroot.read_link("/proc/7/fd/3"), "socket:[4711]");
  EXPECT_EQ(sysroot.read_link("/proc/7/fd/4"), std::nullopt);
  EXPECT_EQ(sysroot.read_or_reason("/proc/7/environ").error_number, EACCES);
  EXPECT_EQ(sysroot.read_or_reason("/proc/7").error_number, EISDIR);
  EXPECT_EQ(sysroot.read_or_reason("/proc/8").error_number, ENOENT);
  EXPECT_EQ(sysroot.read("/proc/7/environ"), std::nullopt);
  int error_number = 0;
  const FileDescriptor file = sysroot.open("/sys/class/net/eth0/mtu", error_number);
  ASSERT_TRUE(file);
  char bytes[8] = "";
  EXPECT_EQ(::pread(file.get(), bytes, sizeof bytes, 1), 4);
  EXPECT_STREQ(bytes, "000\n");
}

TEST(FileTreeTest, LinksOfATreeDoNotLeaveIt) {
  FileTree tree;
  ASSERT_TRUE(tree.add("/a", recorded_link("../../../etc/passwd")));
  ASSERT_TRUE(tree.add("/b", recorded_link("/b")));
  ASSERT_TRUE(tree.add("/c", recorded_link("/proc/self/root/etc/passwd")));
  const Sysroot sysroot(std::make_shared<const FileTree>(std::move(tree)), "node.tar.zst");
  for (const char* path : {"/a", "/b", "/c"}) {
    EXPECT_FALSE(sysroot.exists(path)) << path;
    EXPECT_EQ(sysroot.read(path), std::nullopt) << path;
  }
}

TEST(FileTreeTest, ARootMayBeAnArchive) {
  const TemporaryFolder folder;
  folder.write("node.tar.zst", write_archive(small_tree()));
  folder.write("text", "no archive");
  EXPECT_EQ(Sysroot(folder.path() + "/node.tar.zst").read_line("/sys/class/net/eth0/mtu"), "9000");
  EXPECT_NE(refusal([&] { Sysroot(folder.path() + "/text"); }).find("not an archive"),
            std::string::npos);
}

} // namespace
} // namespace shmemctl
