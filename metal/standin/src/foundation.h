// The classes of Foundation that a Metal program meets: what they hold, and how the stand-in makes them.
#pragma once
#include "objc_runtime.h"

namespace pond {

struct Root : State {};  // NSObject

struct String : Root {
  std::string s;
  String() = default;
  explicit String(std::string v) : s(std::move(v)) {}
};

struct Array : Root {
  std::vector<Held<State>> items;
};

struct Data : Root {
  std::string bytes;
  Data() = default;
  explicit Data(std::string b) : bytes(std::move(b)) {}
};

struct Url : Root {
  std::string path;
  Url() = default;
  explicit Url(std::string p) : path(std::move(p)) {}
};

struct Number : Root {
  double real = 0;
  int64_t whole = 0;
};

struct Dictionary : Root {
  std::vector<std::pair<Held<String>, Held<State>>> items;
};

struct Error : Root {
  std::string domain, description;
  NSInteger code = 0;
  Held<Dictionary> info;
};

struct ProcessInfo : Root {};

Object* newString(const std::string& s);        // autoreleased
Object* newArray(const std::vector<State*>& v); // autoreleased
Error* makeError(const char* domain, NSInteger code, const std::string& description);  // the caller's
// fail stores an autoreleased NSError where the caller asked for it.
void fail(Object** error, const char* domain, NSInteger code, const std::string& description);

Class* rootClass();
void defineFoundation();
void methodsOfFoundation();

}  // namespace pond
