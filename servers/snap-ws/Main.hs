{-# LANGUAGE OverloadedStrings #-}
-- A WebSocket echo by the websockets library on a connection that Snap hands over.
--
-- snap-echo HOST PORT BACKLOG
module Main (main) where

import Control.Monad (forever)
import qualified Data.ByteString.Char8 as B
import Data.ByteString.Builder (lazyByteString)
import Data.ByteString.Builder.Extra (flush)
import Network.Socket (listen)
import Network.WebSockets
import Network.WebSockets.Connection (PendingConnection (..))
import Network.WebSockets.Stream (makeStream)
import Snap.Core
import Snap.Http.Server
import System.Environment (getArgs)
import qualified System.IO.Streams as Streams

-- What the package websockets-snap does, which no suite of Debian has. Snap has read the request by
-- then, where the library's public way to begin wants to read it itself: hence its internal type
-- for one that is read. The handshake's answer is the library's own. The handler ends by an exception,
-- a close as well as a lost connection; Snap then closes the socket.
handOver :: (Connection -> IO ()) -> Snap ()
handOver handler = do
  request <- getRequest
  escapeHttp $ \timeout input output -> do
    timeout (const aYear)
    let send = mapM_ $ \bytes -> Streams.write (Just (lazyByteString bytes <> flush)) output
    stream <- makeStream (Streams.read input) send
    acceptRequest
      PendingConnection
        { pendingOptions = defaultConnectionOptions
        , pendingRequest = RequestHead (rqURI request) (listHeaders request) (rqIsSecure request)
        , pendingOnAccept = const (pure ())
        , pendingStream = stream
        }
      >>= handler
  where
    aYear = 365 * 24 * 3600

echo :: Connection -> IO ()
echo connection = forever (receiveDataMessage connection >>= sendDataMessage connection)

main :: IO ()
main = do
  [host, port, backlog] <- getArgs
  httpServe
    ( setBind (B.pack host)
        . setPort (read port)
        -- Snap listens with a backlog of 150; Linux lets a second listen(2) change it.
        . setStartupHook (mapM_ (`listen` read backlog) . getStartupSockets)
        . setAccessLog ConfigNoLog
        . setErrorLog ConfigNoLog
        . setVerbose False
        $ defaultConfig
    )
    (handOver echo)
