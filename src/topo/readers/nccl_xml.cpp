#include <algorithm>

#include "src/base/error.h"
#include "src/topo/nccl_extras.h"
#include "src/topo/node_shape.h"
#include "src/topo/readers/nccl_tree.h"
#include "src/topo/readers/reader.h"
#include "src/topo/readers/xml.h"

namespace shmemctl {

namespace {

constexpr const char* dump_fix = "give an XML as NCCL_TOPO_DUMP_FILE writes it";

void check_root(const XmlElement& root, const std::string& subject) {
  if (root.name == "graphs" || root.name == "graph")
    throw input_error(
        subject, root.position(),
        "this is an NCCL graph file (NCCL_GRAPH_DUMP_FILE), which holds channels and no topology",
        dump_fix);
  if (root.name != "system")
    throw input_error(subject, root.position(),
                      "the root element is <" + printable(root.name, 40) + ">, not <system>",
                      dump_fix);
  // NCCL puts everything below <cpu>: a root that has other elements only is another tool's.
  const auto has = [&root](const char* name) {
    return std::any_of(root.children.begin(), root.children.end(),
                       [name](const XmlElement& child) { return child.name == name; });
  };
  if (!root.children.empty() && !has("cpu") && !has("shmemctl"))
    throw input_error(subject, root.children.front().position(),
                      "<" + printable(root.children.front().name, 40) +
                          "> in <system> and no <cpu>: not a topology of NCCL",
                      dump_fix);
}

} // namespace

Node read_nccl_xml(const std::string& text, const std::string& subject) {
  const XmlElement root = parse_xml(text, subject);
  check_root(root, subject);
  Node node = nccl::node_of_system(root, subject);
  // NCCL writes version 1, AMD's RCCL 2; both say the same.
  const std::string version = root.get("version");
  if (version != "1" && version != "2")
    node.notes.push_back("the XML's version is " +
                         (version.empty() ? "missing" : printable(version, 20)) + ", not 1");
  node = nccl::with_extras(node, root, subject);
  if (const std::string problem = shape_problem(node); !problem.empty())
    throw input_error(subject, root.position(), problem, dump_fix);
  return node;
}

} // namespace shmemctl
