#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:bison:bison command:flex:flex command:gcc:gcc
# long
. "${0%/*}/lib"

cat >g.y <<-'END'
	%{
	#include <stdio.h>
	int yylex(void);
	void yyerror(const char *s) { (void)s; }
	%}
	%token N
	%left '+'
	%left '*'
	%%
	l: e { printf("%d\n", $1); } ;
	e: N | e '+' e { $$ = $1 + $3; } | e '*' e { $$ = $1 * $3; } ;
	%%
	int main(void) { return yyparse(); }
END
cat >l.l <<-'END'
	%option noyywrap nounput noinput
	%{
	#include "g.tab.h"
	#include <stdlib.h>
	%}
	%%
	[0-9]+ { yylval = atoi(yytext); return N; }
	[+*] return *yytext;
	[ \n] ;
END
bison -d g.y
flex l.l
gcc -o calc g.tab.c lex.yy.c
equal sum "$(echo '2 + 5 * 8' | ./calc)" 42
