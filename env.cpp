#include <unistd.h>
#include <dlfcn.h>
#include <cstdio>
int main(){ auto** p=(char***)dlsym(RTLD_DEFAULT,"__environ"); std::printf("%d %s\n", p==&environ, environ[0]?"set":"null"); }
