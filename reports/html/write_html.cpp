#include "reports/html/write_html.h"

#include "reports/html/assets.h"
#include "src/base/xml_text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

std::string policy() {
  const auto source = [](const std::string& digits) {
    return " 'sha256-" + base64_of_hex(digits) + "'";
  };
  // An icon of nothing keeps browsers from asking a server for one.
  return "default-src 'none'; script-src" + source(chart_library_sha256()) +
         source(page_script_sha256()) + "; style-src" + source(page_style_sha256()) +
         "; img-src data:; base-uri 'none'; form-action 'none'";
}

} // namespace

std::string base64_of_hex(const std::string& digits) {
  static const char* const letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto value = [](char c) {
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  std::string out;
  // Six digits are three bytes, and four letters.
  for (std::size_t at = 0; at < digits.size(); at += 6) {
    const std::size_t bytes = std::min<std::size_t>(digits.size() - at, 6) / 2;
    unsigned group = 0;
    for (std::size_t i = 0; i < 6; ++i)
      group = group << 4 | (i < 2 * bytes ? value(digits[at + i]) : 0);
    for (std::size_t i = 0; i < 4; ++i)
      out += i <= bytes ? letters[group >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

std::string script_json(const json& value) {
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (const char c : text)
    switch (c) {
    case '<':
      out += "\\u003c";
      break;
    case '>':
      out += "\\u003e";
      break;
    case '&':
      out += "\\u0026";
      break;
    default:
      out += c;
    }
  return out;
}

std::string write_html(const json& model) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"" +
      policy() +
      "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>shmemctl report</title>\n<style>";
  page += page_style() + "</style>\n</head>\n<body>\n<header id=\"top\"></header>\n"
                         "<nav id=\"contents\"></nav>\n<main id=\"page\"></main>\n"
                         "<noscript>This page draws its data with a script, which is turned off "
                         "here.</noscript>\n<footer><details><summary>Licence of the charting "
                         "library</summary><pre>";
  page += xml_escape(chart_licence()) + "</pre></details></footer>\n";
  page += "<script type=\"application/json\" id=\"model\">" + script_json(model) + "</script>\n";
  page += "<script>" + chart_library() + "</script>\n<script>" + page_script() + "</script>\n";
  return page + "</body>\n</html>\n";
}

} // namespace shmemctl::html
