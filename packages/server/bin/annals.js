#!/usr/bin/env node
import '../dist/cli/annals.js'
