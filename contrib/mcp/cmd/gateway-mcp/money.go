package main

func moneyCommands() []command { return nil }
