// The reader on our own texts: formats that people paste, and texts that must be refused.
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "src/base/error.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/node.h"
#include "src/model/topo/readers/reader.h"
#include "test_paths.h"

namespace shmemctl {
namespace {

std::string fixture(const std::string& name) {
  std::ifstream in(std::string(SHMEMCTL_TEST_DATA) + "/nvidia-smi/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// The message of the refusal; fails the test if the text is accepted.
std::string refusal(const std::string& text) {
  try {
    read_nvidia_smi(text, "file");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_FALSE(error.fix().empty());
    return error.message();
  }
  ADD_FAILURE() << "accepted:\n" << text;
  return "";
}

std::string word(const Node& node, int left, int right) {
  return to_string(distance(node, left, right));
}

TEST(NvidiaSmi, FindsTheMatrixAmongPromptsAndOtherOutput) {
  const Node node = read_nvidia_smi(fixture("session.txt"), "session.txt");
  ASSERT_EQ(node.gpus.size(), 2U);
  ASSERT_EQ(node.nics.size(), 3U);
  EXPECT_EQ(word(node, 0, 1), "NV4");
  EXPECT_EQ(word(node, 0, 2), "PIX");
  EXPECT_EQ(word(node, 1, 4), "SYS");
  EXPECT_EQ(word(node, 2, 4), "SYS");
  EXPECT_EQ(node.nics[0].name, "ibp65s0");
  EXPECT_EQ(node.nics[0].ports.at(0).link_layer.value, LinkLayer::infiniband);
  EXPECT_EQ(node.nics[2].name, "mlx5_2");
  EXPECT_TRUE(node.nics[2].ports.empty()) << "the kernel's name tells no link layer";
  EXPECT_EQ(node.gpus[1].cpus.value, "32-63");
  EXPECT_FALSE(node.gpus[0].numa.known()) << "0-1 is not one NUMA node";
  EXPECT_NE(node.gpus[0].numa.origin.find("0-1"), std::string::npos);
  EXPECT_EQ(node.gpus[1].numa.value, 1);
  EXPECT_EQ(node.notes.size(), 1U) << "the second matrix is mentioned";
}

TEST(NvidiaSmi, OldFormatTitlesNicsByDeviceAndSaysSoc) {
  const Node node = read_nvidia_smi(fixture("old-soc.txt"), "old-soc.txt");
  ASSERT_EQ(node.nics.size(), 2U);
  EXPECT_EQ(node.nics[0].name, "mlx4_0");
  EXPECT_EQ(node.nics[1].name, "mlx5_bond_0");
  EXPECT_EQ(node.nics[1].ports.at(0).link_layer.value, LinkLayer::ethernet);
  EXPECT_EQ(word(node, 0, 1), "SYS");
  EXPECT_EQ(word(node, 1, 3), "PHB");
  EXPECT_FALSE(node.gpus[0].numa.known());
}

TEST(NvidiaSmi, WindowsLineEndsAndColoursDoNotMatter) {
  const std::string plain = fixture("old-soc.txt");
  std::string coloured;
  for (char c : plain)
    if (c == '\n')
      coloured += "\x1b[0m\r\n\x1b]0;title\a";
    else
      coloured += c;
  EXPECT_EQ(first_difference(read_nvidia_smi(plain, "a"), read_nvidia_smi(coloured, "b")), "");
}

TEST(NvidiaSmi, GpuNumbersThatSkipAreTheDriversIndices) {
  const Node node = read_nvidia_smi("\tGPU0\tGPU2\nGPU0\tX\tPIX\nGPU2\tPIX\tX\n", "file");
  ASSERT_EQ(node.gpus.size(), 2U);
  EXPECT_FALSE(node.gpus[0].driver_index.known());
  EXPECT_EQ(node.gpus[1].index, 1);
  EXPECT_EQ(node.gpus[1].driver_index.value, 2);
}

TEST(NvidiaSmi, OneGpuAlone) {
  const Node node = read_nvidia_smi("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
                                    "GPU0\t X \t\t0\t\tN/A\n",
                                    "file");
  ASSERT_EQ(node.gpus.size(), 1U);
  EXPECT_FALSE(node.gpus[0].cpus.known()) << "its field is empty";
  EXPECT_EQ(node.gpus[0].numa.value, 0);
}

TEST(NvidiaSmi, ALegendWithGapsIsNoted) {
  const Node node = read_nvidia_smi("GPU0 NIC0 NIC1\nGPU0 X PIX SYS\nNIC0 PIX X SYS\n"
                                    "NIC1 SYS SYS X\nNIC Legend:\n NIC0: a\n NIC7: b\n",
                                    "file");
  EXPECT_EQ(node.nics[0].name, "a");
  EXPECT_EQ(node.nics[1].name, "NIC1");
  EXPECT_FALSE(node.nics[0].unnamed);
  EXPECT_TRUE(node.nics[1].unnamed);
  EXPECT_EQ(node.notes.size(), 2U);
}

TEST(NvidiaSmi, AMissingHalfIsTakenFromTheOther) {
  const Node node = read_nvidia_smi("GPU0 GPU1 NIC0\nGPU0 X NV2 PIX\nGPU1 NV2 X SYS\n", "file");
  EXPECT_EQ(word(node, 2, 0), "PIX");
  EXPECT_EQ(word(node, 2, 1), "SYS");
  const Node cut =
      read_nvidia_smi("GPU0 GPU1 NIC0\nGPU0 X\nGPU1 NV2 X SYS\nNIC0 PIX SYS X\n", "file");
  EXPECT_EQ(word(cut, 0, 1), "NV2");
  EXPECT_EQ(word(cut, 0, 2), "PIX");
}

TEST(NvidiaSmi, AQuestionMarkStaysUnknownUnlessTheOtherHalfKnows) {
  const Node node =
      read_nvidia_smi("GPU0 GPU1 NIC0\nGPU0 X ? ?\nGPU1 ? X SYS\nNIC0 PIX SYS X\n", "file");
  EXPECT_EQ(word(node, 0, 1), "?");
  EXPECT_EQ(word(node, 0, 2), "PIX");
}

TEST(NvidiaSmiRefuses, RowsThatDoNotFitWithTheirLine) {
  EXPECT_NE(refusal("GPU0 GPU1\nGPU0 X NV2 PIX\nGPU1 NV2 X\n")
                .find("line 2: row GPU0 has 3 cells, the header 2 columns"),
            std::string::npos);
  EXPECT_NE(refusal("\nGPU0 GPU1\nGPU0 X PIX\nGPU1 PIX X\nGPU0 X PIX\n").find("line 5: a second"),
            std::string::npos);
}

TEST(NvidiaSmiRefuses, TwoHalvesThatContradictEachOtherNamingBothCells) {
  const std::string message = refusal("GPU0 NIC0\nGPU0 X PIX\nNIC0 SYS X\n");
  EXPECT_NE(message.find("NIC0-GPU0 reads SYS"), std::string::npos) << message;
  EXPECT_NE(message.find("GPU0-NIC0 in line 2 reads PIX"), std::string::npos) << message;
}

TEST(NvidiaSmiRefuses, AnXOffTheDiagonalAndADiagonalWithoutX) {
  EXPECT_NE(refusal("GPU0 GPU1\nGPU0 PIX X\nGPU1 PIX X\n").find("where its X must be"),
            std::string::npos);
  EXPECT_NE(refusal("GPU0 GPU1\nGPU0 X PIX\nGPU1 X PIX\n").find("its X in the column of GPU0"),
            std::string::npos);
}

TEST(NvidiaSmiRefuses, WordsThatAreNoDistance) {
  EXPECT_NE(
      refusal("GPU0 GPU1\nGPU0 X NVX\nGPU1 NV1 X\n").find("line 2: the cell of GPU0 and GPU1"),
      std::string::npos);
  EXPECT_NE(refusal("GPU0 GPU1\nGPU0 X OK\nGPU1 OK X\n").find("topo -p2p"), std::string::npos);
}

TEST(NvidiaSmiRefuses, NoMatrixAHeaderAloneAndDoubledNames) {
  EXPECT_NE(refusal("").find("line 1"), std::string::npos);
  EXPECT_NE(refusal("hello\nworld\n").find("line 2: the text ends without a matrix"),
            std::string::npos);
  EXPECT_NE(refusal("\tGPU0\tGPU1\n").find("line 1: the matrix ends after its header"),
            std::string::npos);
  EXPECT_NE(refusal("GPU0 GPU0\nGPU0 X PIX\n").find("two columns are titled GPU0"),
            std::string::npos);
  EXPECT_NE(
      refusal("GPU0 NIC0 NIC1\nGPU0 X PIX PIX\nNIC0: a\nNIC1: a\n").find("two NICs are named"),
      std::string::npos);
  EXPECT_NE(refusal("GPU0 NIC0\nGPU0 X PIX\nNIC0: a\nNIC0: b\n").find("line 4: the legend calls"),
            std::string::npos);
  EXPECT_NE(refusal("GPU0\nGPU0 X \xff\n").find("line 2, column 8: not UTF-8"), std::string::npos);
}

TEST(NvidiaSmiRefuses, AMatrixWiderThanAnyMachine) {
  std::string header;
  std::string row = "GPU0 X";
  for (int i = 0; i < 600; ++i) {
    header += "GPU" + std::to_string(i) + " ";
    row += i > 0 ? " PIX" : "";
  }
  EXPECT_NE(refusal(header + "\n" + row + "\n").find("more than 512 columns"), std::string::npos);
}

TEST(NvidiaSmiRefuses, MoreRowsThanAnyMachineHas) {
  std::string text = "GPU0\nGPU0 X\n";
  for (int i = 0; i < 600; ++i)
    text += "NIC" + std::to_string(i) + " PIX\n";
  EXPECT_NE(refusal(text).find("line 514: more than 512 devices"), std::string::npos);
}

TEST(NvidiaSmi, EveryTruncationOfAWholeTextIsReadOrRefusedAndNeverMakesUpACell) {
  const std::string text = fixture("session.txt");
  const Node whole = read_nvidia_smi(text, "file");
  int accepted = 0;
  for (std::size_t size = 0; size < text.size(); ++size) {
    try {
      const Node part = read_nvidia_smi(text.substr(0, size), "file");
      ++accepted;
      ASSERT_EQ(part.gpus.size(), whole.gpus.size()) << size;
      for (int i = 0; i < 5; ++i)
        for (int j = 0; j < 5; ++j)
          EXPECT_TRUE(word(part, i, j) == "?" || word(part, i, j) == word(whole, i, j)) << size;
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("line "), std::string::npos);
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(NvidiaSmi, PrintedMatricesOfAnySizeAreReadBack) {
  std::mt19937 random(7);
  const std::vector<std::string> words = {"NV1", "NV18", "PIX", "PXB", "PHB", "NODE", "SYS"};
  for (int round = 0; round < 200; ++round) {
    const std::size_t gpus = 1 + random() % 9;
    const std::size_t count = gpus + random() % 9;
    std::vector<std::vector<std::string>> cells(count, std::vector<std::string>(count, "X"));
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = 0; j < i; ++j)
        cells[i][j] = cells[j][i] = words[random() % words.size()];
    const std::string gap = random() % 2 != 0 ? "\t" : "    ";
    auto label = [gpus](std::size_t i) {
      return i < gpus ? "GPU" + std::to_string(i) : "NIC" + std::to_string(i - gpus);
    };
    std::string text = random() % 2 != 0 ? gap : "";
    for (std::size_t i = 0; i < count; ++i)
      text += label(i) + gap;
    text += "CPU Affinity\tNUMA Affinity\n";
    for (std::size_t i = 0; i < count; ++i) {
      text += label(i);
      for (const std::string& cell : cells[i])
        text += gap + cell;
      text += i < gpus ? gap + "0-7" + gap + "1\n" : "\n";
    }
    const Node node = read_nvidia_smi(text, "file");
    ASSERT_EQ(node.gpus.size() + node.nics.size(), count);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = 0; j < count; ++j)
        ASSERT_EQ(word(node, static_cast<int>(i), static_cast<int>(j)), cells[i][j]);
    for (const Gpu& gpu : node.gpus) {
      EXPECT_EQ(gpu.cpus.value, "0-7");
      EXPECT_EQ(gpu.numa.value, 1);
    }
  }
}

TEST(NicNames, PersistentAndConventionalNamesTellTheLinkLayer) {
  for (const char* name : {"ibp14s0", "ibp177s0f1", "ibs3", "ibP1p1s0", "mlx5_ib0", "ibx0c42a1"})
    EXPECT_EQ(link_layer_from_name(name).value, LinkLayer::infiniband) << name;
  for (const char* name :
       {"rocep32s0f0", "roceo1", "mlx5_eth4", "mlx5_bond_0", "mlx5_an0", "iwp3s0f0"})
    EXPECT_EQ(link_layer_from_name(name).value, LinkLayer::ethernet) << name;
  for (const char* name : {"mlx5_0", "rdmap85s0", "mlx5_ib", "mlx5_ibx", "ib0", "ibdev", "iw", "",
                           "roce", "cxi0", "mlx5_bond_", "irdma0"}) {
    EXPECT_FALSE(link_layer_from_name(name).known()) << name;
    EXPECT_FALSE(link_layer_from_name(name).origin.empty());
  }
  EXPECT_NE(link_layer_from_name("ibp14s0").origin.find("derived from the name"),
            std::string::npos);
}

} // namespace
} // namespace shmemctl
